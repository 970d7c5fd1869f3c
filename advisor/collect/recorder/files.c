/* Files that grow below one mapping, in pieces.

   No descriptor of them stays open: programs close those that they don't know, and open others in their places. */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_ROOM (64u << 10)
#define LARGEST_STEP (16u << 20)

uint64_t gw_limit = 1ull << 30;
int gw_full;
static uint64_t taken; /* by all files of this process */

/* System calls, since the functions of the C library are recorded. */
static int open_path(const char *path, int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0644);
}

static int reserve(const char *path, uint64_t from, uint64_t bytes) {
  int fd = open_path(path, O_RDWR);
  if (fd < 0) return 0;
  int failed = posix_fallocate(fd, (off_t)from, (off_t)bytes);
  syscall(SYS_close, fd);
  return !failed;
}

int gw_grow(struct gw_file *file, uint64_t bytes) {
  if (gw_unsettled) {
    if (file->used + bytes <= FIRST_ROOM && gw_is_brief()) return 1;
    gw_settle();
  }
  if (file->used + bytes <= file->room) return 1;
  if (!file->path) return 0;
  uint64_t step = file->room < FIRST_ROOM ? FIRST_ROOM : file->room > LARGEST_STEP ? LARGEST_STEP : file->room;
  if (file->room + step > file->mapped && file->mapped < gw_limit) {
    gw_full = 3;
    return 0;
  }
  if (file->room + step > file->mapped || __atomic_add_fetch(&taken, step, __ATOMIC_RELAXED) > gw_limit) {
    gw_full = 1;
    return 0;
  }
  if (!reserve(file->path, file->room, step)) {
    gw_full = 2;
    return 0;
  }
  file->room += step;
  return 1;
}

int gw_file_open(struct gw_file *file, const char *path) {
  unlink(path); /* of the program that this process was before exec (chrt, numactl) */
  *file = (struct gw_file){0};
  int fd = open_path(path, O_RDWR | O_CREAT | O_EXCL);
  if (fd < 0) return 0;
  file->mapped = gw_limit;
  do file->base = mmap(NULL, file->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  while (file->base == MAP_FAILED && (file->mapped /= 4) > FIRST_ROOM);
  syscall(SYS_close, fd);
  file->path = file->base == MAP_FAILED ? NULL : strdup(path);
  return file->path && gw_grow(file, 64);
}

/* Only the first room is made private: more is not used before the file settles, and where memory is not overcommitted,
   all that may ever be written would not be had. */
void gw_file_part(struct gw_file *file, const char *path) {
  if (!file->path) return;
  int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS;
  free(file->path);
  taken = 0;
  gw_full = 0;
  file->used = file->room = 0;
  file->path = mmap(file->base, FIRST_ROOM, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED ? NULL : strdup(path);
}

void gw_file_settle(struct gw_file *file) {
  if (!file->path) return;
  unlink(file->path);
  int fd = open_path(file->path, O_RDWR | O_CREAT | O_EXCL);
  int kept = fd >= 0 && !posix_fallocate(fd, 0, FIRST_ROOM) &&
             syscall(SYS_write, fd, file->base, file->used) == (long)file->used &&
             mmap(file->base, file->mapped, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED | MAP_NORESERVE, fd, 0) !=
                 MAP_FAILED;
  if (fd >= 0) syscall(SYS_close, fd);
  if (kept) __atomic_add_fetch(&taken, file->room = FIRST_ROOM, __ATOMIC_RELAXED);
  else file->path = NULL;
}

void gw_file_close(struct gw_file *file) {
  if (!file->path) return;
  if (truncate(file->path, (off_t)file->used)) {
  }
  free(file->path);
  file->path = NULL; /* stays mapped, as a signal may still be looking at it */
  file->room = file->used;
}

void gw_keep_descriptor(struct gw_descriptor *kept, const char *path, int flags) {
  struct stat status = {0};
  kept->fd = open_path(path, flags);
  if (kept->fd < 0 || fstat(kept->fd, &status)) return;
  kept->device = status.st_dev;
  kept->file = status.st_ino;
}

int gw_is_ours(const struct gw_descriptor *kept) {
  struct stat status;
  return kept->fd >= 0 && !fstat(kept->fd, &status) && status.st_dev == kept->device && status.st_ino == kept->file;
}

void gw_drop_descriptor(struct gw_descriptor *kept) {
  if (gw_is_ours(kept)) syscall(SYS_close, kept->fd);
  kept->fd = -1;
}
