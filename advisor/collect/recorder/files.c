/* Files that grow below one mapping, in pieces. */
#define _GNU_SOURCE
#include "recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_ROOM (64u << 10)
#define LARGEST_STEP (16u << 20)

uint64_t gw_limit = 1ull << 30;
int gw_full;
static uint64_t taken; /* by all files of this process */

int gw_grow(struct gw_file *file, uint64_t bytes) {
  if (file->used + bytes <= file->room) return 1;
  if (file->fd < 0) return 0;
  uint64_t step = file->room < FIRST_ROOM ? FIRST_ROOM : file->room > LARGEST_STEP ? LARGEST_STEP : file->room;
  if (file->room + step > file->mapped || __atomic_add_fetch(&taken, step, __ATOMIC_RELAXED) > gw_limit) {
    gw_full = 1;
    return 0;
  }
  if (posix_fallocate(file->fd, (off_t)file->room, (off_t)step)) {
    gw_full = 2;
    return 0;
  }
  file->room += step;
  return 1;
}

int gw_file_open(struct gw_file *file, const char *path) {
  unlink(path); /* of the program that this process was before exec (chrt, numactl) */
  *file = (struct gw_file){.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
  if (file->fd < 0) return 0;
  file->mapped = gw_limit;
  do file->base = mmap(NULL, file->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file->fd, 0);
  while (file->base == MAP_FAILED && (file->mapped /= 4) > FIRST_ROOM);
  if (file->base == MAP_FAILED || !gw_grow(file, 64)) {
    close(file->fd);
    file->fd = -1;
    return 0;
  }
  return 1;
}

void gw_file_close(struct gw_file *file) {
  if (file->fd < 0) return;
  int fd = file->fd;
  file->fd = -1;
  if (ftruncate(fd, (off_t)file->used)) {
  }
  close(fd); /* stays mapped, as a signal may still be looking at it */
  file->room = file->used;
}
