/* Writes a file of lines character by character, and reads it by characters and by lines. */
#include <stdio.h>

#define LINES 20000

int main(void) {
  FILE *file = fopen("pieces.txt", "w");
  for (int i = 0; i < LINES; i++)
    for (int k = 0; k < 10; k++) fwrite(k < 9 ? "x" : "\n", 1, 1, file);
  fclose(file);
  char each, line[80];
  long count = 0;
  file = fopen("pieces.txt", "r");
  while (fread(&each, 1, 1, file)) count++;
  rewind(file);
  while (fgets(line, sizeof line, file)) count++;
  fclose(file);
  return count != 11 * LINES;
}
