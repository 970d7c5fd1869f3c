#include <unistd.h>
static int memory[4096];
__attribute__((noinline)) int walk(int step) {
  int sum = 0;
  for (int i = 0; i < 4096; i += step) sum += memory[i];
  return sum;
}
int main(void) { _exit(walk(1) + walk(16)); }
