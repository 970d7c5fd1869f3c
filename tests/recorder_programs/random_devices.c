/* Numbers from the random device, which is opened for each of them, and one file. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
  unsigned sum = 0, one = 0;
  for (int n = 0; n < 200; n++) {
    int fd = open("/dev/urandom", O_RDONLY);
    sum += (unsigned)read(fd, &one, sizeof one) + one;
    close(fd);
    FILE *stream = fopen("/dev/urandom", "rb");
    sum += (unsigned)fread(&one, sizeof one, 1, stream) + one;
    fclose(stream);
  }
  FILE *out = fopen("numbers.out", "w");
  fprintf(out, "%u\n", sum);
  fclose(out);
  return 0;
}
