/* Whether a collective brings what the one before at the same place has brought. */
#include <sys/uio.h>
#include <unistd.h>

#define LOOKED_AT_B 4096 /* of smaller ones it does not matter */
#define LOOKS 64         /* words of the data that are compared, spread over all of it */

static struct {
  uint64_t caller, digest;
  int64_t size;
} brought[64];

/* Read LOOKS words through the kernel, which refuses addresses of devices instead of ending the program. */
static int look_at(const char *data, int64_t size, uint64_t *words) {
  struct iovec here = {words, LOOKS * sizeof *words}, there[LOOKS];
  int64_t step = size / LOOKS;
  for (int64_t i = 0; i < LOOKS; i++) {
    int64_t shift = (int64_t)((uint64_t)i * 2654435761u % (uint64_t)(step - 7));
    there[i].iov_base = (void *)(uintptr_t)(data + i * step + shift);
    there[i].iov_len = sizeof *words;
  }
  return process_vm_readv(getpid(), &here, 1, there, LOOKS, 0) == (ssize_t)here.iov_len;
}

/* 0 where the numbers are all the same, which says nothing. */
static uint64_t digest_of(const uint64_t *words) {
  uint64_t digest = 14695981039346656037u;
  int alike = 1;
  for (int i = 0; i < LOOKS; i++) {
    digest = (digest ^ words[i]) * 1099511628211u;
    digest ^= digest >> 29;
    alike &= words[i] == words[0];
  }
  return alike ? 0 : digest | 1;
}

/* Mark the record of a collective that has brought `count` numbers, if those were there already. */
static void compare_data(struct gw_record *r, const void *data, int64_t count, MPI_Datatype type) {
  int64_t size = r ? bytes(count, type) : 0;
  MPI_Aint begin = 0, extent = 0;
  uint64_t words[LOOKS];
  if (size < LOOKED_AT_B || !data || PMPI(MPI_Type_get_extent)(type, &begin, &extent)) return;
  if (begin || (int64_t)extent * count != size || !look_at(data, size, words)) return;
  uint64_t digest = digest_of(words), caller = r->caller;
  unsigned slot = (unsigned)((caller ^ caller >> 7 ^ (uint64_t)size >> 3) % (sizeof brought / sizeof *brought));
  hold();
  if (digest && brought[slot].caller == caller && brought[slot].size == size && brought[slot].digest == digest)
    r->tag = GW_REPEATED;
  brought[slot].caller = caller;
  brought[slot].size = size;
  brought[slot].digest = digest;
  let_go();
}
