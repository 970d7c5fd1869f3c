/* Two sorted blocks are sorted together, again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 50000 };
static int own[N], other[N], both[2 * N];

static int compare(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

int main(void) {
  long sum = 0;
  for (int round = 0; round < 40; round++) {
    for (int i = 0; i < N; i++) own[i] = 3 * i + round, other[i] = 2 * i;
    memcpy(both, own, sizeof own);
    memcpy(both + N, other, sizeof other);
    qsort(both, 2 * N, sizeof *both, compare);
    sum += both[N];
  }
  printf("%ld\n", sum);
  return 0;
}
