/* A program without OpenMP, or by -DPART the plugin with it that it opens for itself, as Python opens its modules. */
#include <stdio.h>

#ifdef PART
void add_up(int *sum) {
  int found = 0;
#pragma omp parallel for reduction(+ : found)
  for (int i = 0; i < 1000; i++)
#pragma omp critical
    found += i;
  *sum = found;
}

void pass(void) {
#pragma omp parallel
  {
#pragma omp barrier
  }
}
#else
#include <dlfcn.h>

int main(int argc, char **argv) {
  int sum = 0;
  for (int i = 1; i < argc; i++) {
    void *part = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (!part) return puts(dlerror()), 1;
    ((void (*)(int *))dlsym(part, "add_up"))(&sum);
    ((void (*)(void))dlsym(part, "pass"))();
  }
  return printf("%d\n", sum) < 0;
}
#endif
