/* The functions that are recorded beside those of MPI, by number; `name` is what the trace calls them. */
#define GW_FUNCTIONS(X)                                                                                             \
  X(read) X(write) X(pread) X(pwrite) X(pread64) X(pwrite64) X(readv) X(writev) X(preadv) X(pwritev)                \
  X(fsync) X(fdatasync) X(ftruncate) X(flock) X(lockf) X(fread) X(fwrite) X(fflush) X(fputs) X(puts) X(fgets)       \
  X(getline) X(vfprintf) X(__vfprintf_chk) X(printf) X(fprintf) X(__printf_chk) X(__fprintf_chk)                    \
  X(open) X(open64) X(openat) X(openat64) X(creat) X(fopen) X(fopen64) X(close) X(fclose)                           \
  X(sleep) X(usleep) X(nanosleep) X(clock_nanosleep) X(poll) X(select)                                              \
  X(ppoll) X(pselect) X(epoll_wait) X(epoll_pwait) X(recv) X(recvfrom) X(recvmsg) X(send) X(sendto) X(sendmsg)      \
  X(connect) X(accept) X(accept4)                                                                                   \
  X(pthread_create) X(pthread_join) X(pthread_barrier_wait) X(pthread_mutex_lock) X(pthread_cond_wait)              \
  X(pthread_cond_timedwait) X(pthread_cond_clockwait) X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock)               \
  X(sem_wait) X(sem_timedwait) X(sem_clockwait) X(futex_wait)                                                       \
  X(thrd_create) X(thrd_join) X(mtx_lock) X(cnd_wait) X(cnd_timedwait)                                              \
  X(fork) X(wait) X(wait3) X(wait4) X(waitpid) X(pipe_read) X(pipe_write) X(python_gil)                             \
  X(omp_parallel) X(omp_barrier) X(omp_implicit_barrier) X(omp_critical) X(omp_atomic) X(omp_ordered)               \
  X(omp_taskwait) X(omp_lock) X(omp_task) X(omp_task_create) X(omp_taskloop)

#define GW_NUMBER(name) F_##name,
enum gw_function { GW_FUNCTIONS(GW_NUMBER) GW_FIRST_OF_MPI };
#undef GW_NUMBER
