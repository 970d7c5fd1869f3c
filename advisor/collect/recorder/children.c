/* Children of fork that go on in the same program, such as the workers of a pool.

   A child writes into memory of its own until it has lived or computed for some time, and only then into files: those of
   fork and exec, and of programs that fork for every request, leave none.  What a child's numbers stand for is what they
   stood for in its parent; it says itself only what is new.  How it ended stands in the call that waited for it. */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "posix_numbers.h"

__thread int gw_forking __attribute__((tls_model("initial-exec")));

pid_t fork(void) {
  static pid_t (*real)(void);
  if (!real) real = (pid_t(*)(void))gw_resolve("fork");
  struct gw_record *r = ENTER(F_fork);
  if (r) gw_tell_objects(); /* its children need not */
  gw_forking = r != NULL;
  pid_t child = real();
  gw_forking = 0;
  if (!child) return 0; /* which has begun anew */
  if (r) r->partner = child;
  gw_leave(r);
  return child;
}

/* That of the C library forks and leaves without telling anybody. */
int daemon(int nochdir, int noclose) {
  pid_t child = fork();
  if (child < 0) return -1;
  if (child > 0) _exit(0);
  if (setsid() < 0) return -1;
  if (!nochdir && chdir("/")) errno = 0; /* as the C library does */
  int null = noclose ? -1 : open("/dev/null", O_RDWR);
  for (int at = 0; null >= 0 && at < 3; at++) dup2(null, at);
  if (null > 2) close(null);
  return 0;
}

/* End a wait for children: which one ended, how, and what CPU time it and those that it had waited for have used. */
static void leave_wait(struct gw_record *r, pid_t child, int status, const struct rusage *used) {
  if (!r) return;
  gw_returned(r);
  if (child <= 0) {
    gw_leave_idle(r);
    return;
  }
  r->partner = child;
  r->request = (uint32_t)status;
  r->size = ((int64_t)used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000000 +
            ((int64_t)used->ru_utime.tv_usec + used->ru_stime.tv_usec) * 1000;
  gw_leave_returned(r);
}

typedef pid_t (*wait4_function)(pid_t, int *, int, struct rusage *);

static wait4_function real_wait4(void) {
  static wait4_function real;
  if (!real) real = (wait4_function)gw_resolve("wait4");
  return real;
}

static pid_t wait_recorded(struct gw_record *r, pid_t child, int *status, int options, struct rusage *used) {
  struct rusage own = {0};
  int code = 0;
  pid_t found = real_wait4()(child, &code, options, &own);
  int saved = errno;
  if (found > 0 && status) *status = code;
  if (found > 0 && used) *used = own;
  leave_wait(r, found, code, &own);
  errno = saved;
  return found;
}

pid_t wait4(pid_t child, int *status, int options, struct rusage *used) {
  return wait_recorded(ENTER(F_wait4), child, status, options, used);
}

pid_t wait3(int *status, int options, struct rusage *used) {
  return wait_recorded(ENTER(F_wait3), -1, status, options, used);
}

pid_t waitpid(pid_t child, int *status, int options) {
  return wait_recorded(ENTER(F_waitpid), child, status, options, NULL);
}

pid_t wait(int *status) { return wait_recorded(ENTER(F_wait), -1, status, 0, NULL); }

/* What asks for this recorder, as the process found it: a program that is started with an environment of its own has
   none of it (pyperf, tests that run in a clean environment), and would be left out. */
static char *handed_on[4];
static size_t handed;

static int is_named(const char *variable, const char *name) {
  size_t length = strlen(name);
  return !strncmp(variable, name, length) && variable[length] == '=';
}

/* Copies: programs write what they do over their environment, for ps to show it. */
static void keep_variable(const char *one) {
  char *copy = strdup(one);
  if (copy) handed_on[handed++] = copy;
}

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);
static int (*real_execve)(const char *, char *const[], char *const[]);
static int (*real_execvpe)(const char *, char *const[], char *const[]);
static spawn_function *real_posix_spawn, *real_posix_spawnp;

/* Found before any fork: in a child of several threads the lock of the loader may be held by one that is gone. */
static void find_starters(void) {
  real_execvpe = (__typeof__(real_execvpe))gw_resolve("execvpe");
  real_posix_spawn = (spawn_function *)gw_resolve("posix_spawn");
  real_posix_spawnp = (spawn_function *)gw_resolve("posix_spawnp");
  real_execve = (__typeof__(real_execve))gw_resolve("execve");
}

void gw_keep_environment(void) {
  static const char *const names[] = {"LD_PRELOAD", "GAPWATCH_RECORDING", "GAPWATCH_RECORDING_LIMIT",
                                      "GAPWATCH_RECORDING_SAMPLES"};
  find_starters();
  for (char **one = environ; one && *one; one++)
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
      if (is_named(*one, names[at]) && handed < sizeof handed_on / sizeof *handed_on) keep_variable(*one);
}

static size_t count_variables(char *const *environment) {
  size_t count = 0;
  while (environment && environment[count]) count++;
  return count;
}

/* Put an environment and what asks for the recorder into `room`, unless it says itself what is loaded before. */
static char *const *hand_on(char *const *environment, char **room) {
  size_t count = count_variables(environment);
  for (size_t at = 0; at < count; at++) {
    if (is_named(environment[at], "LD_PRELOAD") || is_named(environment[at], "GAPWATCH_RECORDING")) return environment;
    room[at] = environment[at];
  }
  memcpy(room + count, handed_on, handed * sizeof *room);
  room[count + handed] = NULL;
  return room;
}

/* The room is on the stack: a child of vfork shares the memory of its parent. */
int execve(const char *path, char *const argv[], char *const envp[]) {
  if (!real_execve) find_starters();
  char *room[count_variables(envp) + handed + 1];
  return real_execve(path, argv, hand_on(envp, room));
}

/* Of the C library, these reach its execve without going through the one above: env -i starts programs so. */
int execvpe(const char *file, char *const argv[], char *const envp[]) {
  if (!real_execve) find_starters();
  char *room[count_variables(envp) + handed + 1];
  return real_execvpe(file, argv, hand_on(envp, room));
}

int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }

int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

#define SPAWNING(name)                                                                                             \
  int name(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how, \
           char *const argv[], char *const envp[]) {                                                               \
    if (!real_execve) find_starters();                                                                             \
    char *room[count_variables(envp) + handed + 1];                                                                \
    return real_##name(child, path, actions, how, argv, hand_on(envp, room));                                      \
  }
SPAWNING(posix_spawn)
SPAWNING(posix_spawnp)
