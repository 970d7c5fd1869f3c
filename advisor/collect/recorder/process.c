/* The process file: who a process is, and what its numbers stand for. */
#define _GNU_SOURCE
#include "recorder.h"

#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct gw_descriptor process_file = {.fd = -1};
static char process_path[4200];
static char kept[2 * 8192]; /* lines of a child of fork that has no files yet */
static size_t keeping;

int gw_process_open(const char *path) {
  snprintf(process_path, sizeof process_path, "%s", path);
  gw_keep_descriptor(&process_file, path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  return process_file.fd >= 0;
}

void gw_process_part(const char *path) {
  gw_drop_descriptor(&process_file);
  snprintf(process_path, sizeof process_path, "%s", path ? path : "");
  if (!gw_unsettled) keeping = 0;
}

static void write_lines(const char *lines, size_t length) {
  if (!gw_is_ours(&process_file)) gw_keep_descriptor(&process_file, process_path, O_WRONLY | O_APPEND);
  ssize_t written = syscall(SYS_write, process_file.fd, lines, length);
  (void)written;
}

/* Make the file of a child of fork, with the lines that were kept; all that it does not say is its parent's. */
void gw_process_settle(pid_t parent, uint64_t forked_ns) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  gw_keep_descriptor(&process_file, process_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  gw_tell("gapwatch/trace/1 process");
  gw_tell("pid %d %d", (int)getpid(), (int)parent);
  gw_tell_text("host", -1, host);
  gw_tell("forked %llu", (unsigned long long)forked_ns);
  write_lines(kept, keeping);
}

static void keep_line(const char *format, va_list list) {
  int length = vsnprintf(kept + keeping, sizeof kept - keeping, format, list);
  keeping += length > 0 ? (size_t)length : 0;
  kept[keeping++] = '\n';
}

void gw_tell(const char *format, ...) {
  char line[8192];
  va_list list;
  if (gw_unsettled && sizeof kept - keeping < sizeof line) gw_settle();
  va_start(list, format);
  if (gw_unsettled) {
    keep_line(format, list);
    va_end(list);
    return;
  }
  int length = vsnprintf(line, sizeof line - 1, format, list);
  va_end(list);
  if (length < 0 || !process_path[0]) return;
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length++] = '\n';
  write_lines(line, (size_t)length);
}

void gw_tell_text(const char *key, long number, const char *text) {
  char safe[4096];
  size_t at = 0;
  for (; *text && at < sizeof safe - 5; text++) {
    unsigned char c = (unsigned char)*text;
    at += (size_t)(c < 32 || c == 127 || c == '\\' ? sprintf(safe + at, "\\x%02x", c) : sprintf(safe + at, "%c", c));
  }
  safe[at] = 0;
  if (number >= 0) gw_tell("%s %ld %s", key, number, safe);
  else gw_tell("%s %s", key, safe);
}

void gw_tell_function(unsigned function) {
  if (__atomic_exchange_n(&gw_named[function], 1, __ATOMIC_RELAXED)) return;
  gw_tell("function %u %s", function, gw_names[function]);
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *to) {
  (void)size;
  *(unsigned long long *)to = info->dlpi_adds;
  return 1;
}

/* Copy which files are mapped where code lies, so that addresses can be named later, unless nothing was loaded since. */
void gw_tell_objects(void) {
  static unsigned long long told;
  unsigned long long loads = 0;
  dl_iterate_phdr(count_loads, &loads);
  if (loads && loads == told) return;
  told = loads;
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[4400], path[4097], rights[5];
  unsigned long begin, end, offset;
  while (maps && fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4096[^\n]", &begin, &end, rights, &offset, path) == 5 &&
        rights[2] == 'x' && path[0] == '/')
      gw_tell("object %lx %lx %lx %s", begin, end, offset, path);
  }
  if (maps) fclose(maps);
}

void gw_tell_usage(const char *when) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  gw_tell("usage %s %llu %ld.%06ld %ld.%06ld %ld %ld %ld %ld %ld", when, (unsigned long long)gw_now(),
          (long)u.ru_utime.tv_sec, (long)u.ru_utime.tv_usec, (long)u.ru_stime.tv_sec, (long)u.ru_stime.tv_usec,
          u.ru_maxrss, u.ru_minflt, u.ru_majflt, u.ru_nvcsw, u.ru_nivcsw);
}

/* Tell what CPU time the children had that the process has waited for, whatever is recorded of them. */
void gw_tell_children(void) {
  struct rusage u;
  getrusage(RUSAGE_CHILDREN, &u);
  gw_tell("children %.6f", (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                               1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec));
}

/* Tell what all cores of the machine have done so far: busy, idle, stolen by a hypervisor (proc(5)). */
void gw_tell_machine(const char *when) {
  FILE *file = fopen("/proc/stat", "re");
  unsigned long long n[8];
  if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6,
                     n + 7) == 8)
    gw_tell("machine %s %llu %llu %llu %llu %llu %llu %llu %llu %ld", when, n[0], n[1], n[2], n[3], n[4], n[5], n[6],
            n[7], sysconf(_SC_CLK_TCK));
  if (file) fclose(file);
}

void gw_tell_affinity(void) {
  cpu_set_t set;
  char text[4096] = "";
  size_t at = 0;
  if (sched_getaffinity(0, sizeof set, &set)) return;
  for (int core = 0; core < CPU_SETSIZE && at < sizeof text - 8; core++)
    if (CPU_ISSET(core, &set)) at += (size_t)sprintf(text + at, " %d", core);
  gw_tell("affinity%s", text);
}

const char *gw_program(void) {
  static char path[4097];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  return path;
}

void gw_tell_process(int rank, int ranks) {
  struct timespec real, boot;
  char host[256] = "", text[4096];
  gethostname(host, sizeof host - 1);
  gw_tell("gapwatch/trace/1 process");
  gw_tell("pid %d %d", (int)getpid(), (int)getppid());
  gw_tell_text("host", -1, host);
  gw_tell_text("program", -1, gw_program());
  FILE *file = fopen("/proc/self/cmdline", "re");
  size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
    text[length] = 0;
    gw_tell_text("argument", -1, text + at);
  }
  file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file && fscanf(file, "%64s", text) == 1) gw_tell("clock %s", text);
  if (file) fclose(file);
  clock_gettime(CLOCK_REALTIME, &real);
  clock_gettime(CLOCK_MONOTONIC, &boot);
  gw_tell("time %lld.%09ld %lld.%09ld", (long long)real.tv_sec, real.tv_nsec, (long long)boot.tv_sec, boot.tv_nsec);
  if (rank >= 0) gw_tell("rank %d %d", rank, ranks);
  gw_tell("cores %ld", sysconf(_SC_NPROCESSORS_ONLN));
  gw_tell_affinity();
}

int gw_is_launched(void) {
  static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MPI_LOCALRANKID", NULL};
  for (int i = 0; variables[i]; i++)
    if (getenv(variables[i])) return 1;
  return 0;
}

int gw_launches(void) {
  static const char *const names[] = {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "srun", "hydra",
                                      "sh", "bash", "dash", "env", "time", "timeout", "nice", "numactl", "taskset",
                                      "make", NULL};
  const char *name = strrchr(gw_program(), '/');
  name = name ? name + 1 : gw_program();
  for (int i = 0; names[i]; i++)
    if (!strncmp(name, names[i], strlen(names[i])) &&
        (strlen(names[i]) > 4 || !name[strlen(names[i])])) return 1;
  return 0;
}
