/* Many short writes into one buffer. */
#include <stdio.h>

int main(void) {
  FILE *file = fopen("prints.out", "w");
  for (int i = 0; i < 200000; i++) fprintf(file, "%d\n", i);
  fclose(file);
  return 0;
}
