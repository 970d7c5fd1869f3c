/* Files, sleeping and waiting of POSIX, and buffered input and output of the C library. */
#define _GNU_SOURCE
#define _FORTIFY_SOURCE 0
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "posix_numbers.h"

#define DESCRIPTORS 4096

#define NO_FILE (-1)

static int file_of[DESCRIPTORS];  /* number of the file behind a descriptor, 0 unknown, NO_FILE of a random device */
static char is_pipe[DESCRIPTORS]; /* or a socket */
static int last_file;

int gw_new_file(const char *name) {
  int number = __atomic_add_fetch(&last_file, 1, __ATOMIC_RELAXED);
  gw_tell_text("file", number, name);
  return number;
}

static int file_behind(int descriptor) {
  char link[64], path[4097];
  if (descriptor < 0 || descriptor >= DESCRIPTORS) return GW_NOBODY;
  if (file_of[descriptor]) return file_of[descriptor];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  is_pipe[descriptor] = !strncmp(path, "pipe:", 5) || !strncmp(path, "socket:", 7);
  return file_of[descriptor] = gw_new_file(length > 0 ? path : link);
}

static void forget_file(int descriptor) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS) file_of[descriptor] = 0;
}

/* The kernel computes what is read there, and nothing is stored: opening and reading it is computation of whoever asks
   for numbers, as std::random_device does, once for each where it is constructed anew. */
static int is_random(const char *path) {
  return path && (!strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random"));
}

static int reads_random(int descriptor) {
  return descriptor >= 0 && descriptor < DESCRIPTORS && file_of[descriptor] == NO_FILE;
}

static void remember_random(int descriptor, const char *path) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS && is_random(path)) file_of[descriptor] = NO_FILE;
}

static void moved(struct gw_record *r, int descriptor, int64_t size) {
  int saved = errno;
  r->partner = file_behind(descriptor);
  r->size = size < 0 ? 0 : size;
  r->event = GW_IO;
  errno = saved;
}

/* A call of a stream that its buffer serves copies some bytes and returns: there are millions of such calls, and timing
   one takes longer than the call. It counts as computation, and its bytes as those of the next call that is recorded,
   which asks the kernel. The buffers are known of glibc. */
static int64_t passed_B[DESCRIPTORS];

static int64_t take_passed(int descriptor) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS || !passed_B[descriptor]) return 0;
  return __atomic_exchange_n(&passed_B[descriptor], 0, __ATOMIC_RELAXED);
}

#ifdef __GLIBC__
static int is_served(const FILE *stream, size_t size, const char *begin, const char *end) {
  int descriptor = stream->_fileno;
  if (!size) return 1;
  if (end < begin || size > (size_t)(end - begin) || descriptor < 0 || descriptor >= DESCRIPTORS) return 0;
  int64_t before = __atomic_load_n(&passed_B[descriptor], __ATOMIC_RELAXED); /* an atomic addition takes as long as the call */
  __atomic_store_n(&passed_B[descriptor], before + (int64_t)size, __ATOMIC_RELAXED);
  return 1;
}
#define IS_READ(stream, size) is_served(stream, size, (stream)->_IO_read_ptr, (stream)->_IO_read_end)
#define IS_WRITTEN(stream, size) is_served(stream, size, (stream)->_IO_write_ptr, (stream)->_IO_write_end)

static int is_line_read(const FILE *stream, size_t most) {
  const char *begin = stream->_IO_read_ptr, *end = stream->_IO_read_end;
  size_t there = begin < end ? (size_t)(end - begin) : 0;
  if (!there) return 0;
  const char *last = memchr(begin, '\n', there < most ? there : most);
  return last ? IS_READ(stream, (size_t)(last + 1 - begin)) : most <= there && IS_READ(stream, most);
}
#else
#define IS_READ(stream, size) 0
#define IS_WRITTEN(stream, size) 0
#define is_line_read(stream, most) 0
#endif

/* Of a pipe or a socket, a read waits for what another process writes, and moves nothing from or to a file. Standard
   output counts as a file, whatever it leads to. */
static void passed(struct gw_record *r, int descriptor, int64_t size, unsigned function) {
  moved(r, descriptor, size);
  if (descriptor < 0 || descriptor >= DESCRIPTORS || !is_pipe[descriptor]) return;
  if (function == F_pipe_write && descriptor <= STDERR_FILENO) return;
  if (!gw_named[function]) gw_tell_function(function);
  r->function = (uint16_t)function;
  r->event = 0;
}

/* A wrapper: RETURNED is what the call gave, INSIDE what to do with the record `r` behind it; none is written UNLESS. */
#define WRAP(type, name, parameters, arguments, inside) WRAP_UNLESS(0, type, name, parameters, arguments, inside)
#define WRAP_UNLESS(random, type, name, parameters, arguments, inside)                           \
  type name parameters {                                                                         \
    static type(*real) parameters;                                                               \
    if (!real) real = (type(*) parameters)gw_resolve(#name);                                     \
    struct gw_record *r = (random) ? NULL : ENTER_BRIEF(F_##name);                               \
    type returned = real arguments;                                                              \
    if (r) {                                                                                     \
      inside;                                                                                    \
      gw_leave_brief(r);                                                                             \
    }                                                                                            \
    return returned;                                                                             \
  }

#define ADDRESS __SOCKADDR_ARG
#define CONST_ADDRESS __CONST_SOCKADDR_ARG
#define MOVED(size) moved(r, fd, (int64_t)(size))
#define TAKEN(size) passed(r, fd, (int64_t)(size), F_pipe_read)
#define GIVEN(size) passed(r, fd, (int64_t)(size), F_pipe_write)
#define STREAM(size) moved(r, fileno(stream), (int64_t)(size) + take_passed(fileno(stream)))

WRAP_UNLESS(reads_random(fd), ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), TAKEN(returned))
WRAP(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), GIVEN(returned))
WRAP(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), MOVED(returned))
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at), MOVED(returned))
WRAP(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), MOVED(returned))
WRAP(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at), MOVED(returned))
WRAP(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n), TAKEN(returned))
WRAP(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), GIVEN(returned))
WRAP(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), MOVED(returned))
WRAP(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), MOVED(returned))
WRAP(int, fsync, (int fd), (fd), MOVED(0))
WRAP(int, fdatasync, (int fd), (fd), MOVED(0))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), MOVED(0))
WRAP(int, flock, (int fd, int how), (fd, how), (void)0)
WRAP(int, lockf, (int fd, int how, off_t size), (fd, how, size), (void)0)

WRAP_UNLESS(IS_READ(stream, size * n) || reads_random(fileno(stream)), size_t, fread, (void *to, size_t size, size_t n, FILE *stream),
            (to, size, n, stream), STREAM(returned * size))
WRAP_UNLESS(IS_WRITTEN(stream, size * n), size_t, fwrite, (const void *from, size_t size, size_t n, FILE *stream),
            (from, size, n, stream), STREAM(returned * size))
WRAP(int, fflush, (FILE *stream), (stream), if (stream) STREAM(0))
WRAP_UNLESS(IS_WRITTEN(stream, strlen(text)), int, fputs, (const char *text, FILE *stream), (text, stream),
            STREAM(strlen(text)))
WRAP(int, puts, (const char *text), (text), moved(r, 1, (int64_t)strlen(text) + 1))
WRAP_UNLESS(n > 1 && is_line_read(stream, (size_t)n - 1), char *, fgets, (char *to, int n, FILE *stream),
            (to, n, stream), STREAM(returned ? strlen(to) : 0))
WRAP_UNLESS(is_line_read(stream, SIZE_MAX), ssize_t, getline, (char **to, size_t *n, FILE *stream), (to, n, stream),
            STREAM(returned))
WRAP(int, vfprintf, (FILE *stream, const char *format, va_list list), (stream, format, list), STREAM(returned))
WRAP(int, __vfprintf_chk, (FILE *stream, int flag, const char *format, va_list list), (stream, flag, format, list),
     STREAM(returned))

/* Calls with a variable number of parameters go through those that take a list. */
#define PRINTING(name, parameters, stream, list_call)                                                  \
  int name parameters {                                                                                \
    struct gw_record *r = ENTER_BRIEF(F_##name); \
    va_list list;                                                                                      \
    va_start(list, format);                                                                            \
    int returned = list_call;                                                                          \
    va_end(list);                                                                                      \
    if (r) {                                                                                           \
      moved(r, fileno(stream), returned);                                                              \
      gw_leave_brief(r);                                                                               \
    }                                                                                                  \
    return returned;                                                                                   \
  }
PRINTING(printf, (const char *format, ...), stdout, vfprintf(stdout, format, list))
PRINTING(fprintf, (FILE *stream, const char *format, ...), stream, vfprintf(stream, format, list))
PRINTING(__printf_chk, (int flag, const char *format, ...), stdout, __vfprintf_chk(stdout, flag, format, list))
PRINTING(__fprintf_chk, (FILE *stream, int flag, const char *format, ...), stream,
         __vfprintf_chk(stream, flag, format, list))

static void opened(struct gw_record *r, int fd, const char *path) {
  int saved = errno;
  int number = gw_new_file(path);
  if (fd >= 0 && fd < DESCRIPTORS) {
    file_of[fd] = number;
    is_pipe[fd] = 0;
  }
  r->partner = number;
  r->size = 0;
  r->event = GW_IO;
  errno = saved;
}

static void leave_opening(struct gw_record *r, int fd, const char *path) {
  remember_random(fd, path);
  if (!r) return;
  opened(r, fd, path);
  gw_leave_brief(r);
}

#define OPENING(name, parameters, before_mode, arguments, path)                                        \
  int name parameters {                                                                                \
    static int(*real) parameters;                                                                      \
    if (!real) real = (int(*) parameters)gw_resolve(#name);                                            \
    mode_t mode = 0;                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                               \
      va_list list;                                                                                    \
      va_start(list, flags);                                                                           \
      mode = va_arg(list, mode_t);                                                                     \
      va_end(list);                                                                                    \
    }                                                                                                  \
    struct gw_record *r = is_random(path) ? NULL : ENTER_BRIEF(F_##name);                              \
    int returned = real arguments;                                                                     \
    leave_opening(r, returned, path);                                                                  \
    return returned;                                                                                   \
  }
OPENING(open, (const char *path, int flags, ...), , (path, flags, mode), path)
OPENING(open64, (const char *path, int flags, ...), , (path, flags, mode), path)
OPENING(openat, (int folder, const char *path, int flags, ...), , (folder, path, flags, mode), path)
OPENING(openat64, (int folder, const char *path, int flags, ...), , (folder, path, flags, mode), path)
WRAP(int, creat, (const char *path, mode_t mode), (path, mode), opened(r, returned, path))

#define STREAM_OPENING(name)                                                   \
  FILE *name(const char *path, const char *how) {                              \
    static FILE *(*real)(const char *, const char *);                          \
    if (!real) real = (FILE * (*)(const char *, const char *)) gw_resolve(#name); \
    struct gw_record *r = is_random(path) ? NULL : ENTER_BRIEF(F_##name);      \
    FILE *returned = real(path, how);                                          \
    leave_opening(r, returned ? fileno(returned) : -1, path);                  \
    return returned;                                                           \
  }
STREAM_OPENING(fopen)
STREAM_OPENING(fopen64)

int close(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))gw_resolve("close");
  struct gw_record *r = reads_random(fd) ? NULL : ENTER_BRIEF(F_close);
  if (r) moved(r, fd, 0);
  forget_file(fd);
  int returned = real(fd);
  gw_leave_brief(r);
  return returned;
}

int fclose(FILE *stream) {
  static int (*real)(FILE *);
  if (!real) real = (int (*)(FILE *))gw_resolve("fclose");
  int fd = fileno(stream);
  struct gw_record *r = reads_random(fd) ? NULL : ENTER_BRIEF(F_fclose);
  if (r) moved(r, fd, take_passed(fd));
  forget_file(fd);
  int returned = real(stream);
  gw_leave_brief(r);
  return returned;
}

WRAP(unsigned, sleep, (unsigned seconds), (seconds), (void)0)
WRAP(int, usleep, (useconds_t time), (time), (void)0)
WRAP(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), (void)0)
WRAP(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
     (clock, flags, time, left), (void)0)
WRAP(int, poll, (struct pollfd *of, nfds_t n, int milliseconds), (of, n, milliseconds), (void)0)
WRAP(int, select, (int n, fd_set *in, fd_set *out, fd_set *other, struct timeval *time), (n, in, out, other, time),
     (void)0)
WRAP(int, ppoll, (struct pollfd *of, nfds_t n, const struct timespec *time, const sigset_t *signals),
     (of, n, time, signals), (void)0)
WRAP(int, pselect,
     (int n, fd_set *in, fd_set *out, fd_set *other, const struct timespec *time, const sigset_t *signals),
     (n, in, out, other, time, signals), (void)0)
WRAP(int, epoll_wait, (int fd, struct epoll_event *events, int n, int milliseconds), (fd, events, n, milliseconds),
     (void)0)
WRAP(int, epoll_pwait, (int fd, struct epoll_event *events, int n, int milliseconds, const sigset_t *signals),
     (fd, events, n, milliseconds, signals), (void)0)

/* Sockets are read and written like pipes. */
WRAP(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags), TAKEN(returned))
WRAP(ssize_t, recvfrom, (int fd, void *to, size_t n, int flags, ADDRESS from, socklen_t *length),
     (fd, to, n, flags, from, length), TAKEN(returned))
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), TAKEN(returned))
WRAP(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags), GIVEN(returned))
WRAP(ssize_t, sendto, (int fd, const void *from, size_t n, int flags, CONST_ADDRESS to, socklen_t length),
     (fd, from, n, flags, to, length), GIVEN(returned))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), GIVEN(returned))
WRAP(int, connect, (int fd, CONST_ADDRESS to, socklen_t length), (fd, to, length), (void)0)
WRAP(int, accept, (int fd, ADDRESS from, socklen_t *length), (fd, from, length), (void)0)
WRAP(int, accept4, (int fd, ADDRESS from, socklen_t *length, int flags), (fd, from, length, flags), (void)0)

#define EXIT(name)                                                   \
  void name(int status) {                                            \
    static void (*real)(int);                                        \
    if (!real) real = (void (*)(int))gw_resolve(#name);              \
    gw_stop();                                                       \
    real(status);                                                    \
    __builtin_unreachable();                                         \
  }
EXIT(_exit)
EXIT(_Exit)
EXIT(quick_exit)
