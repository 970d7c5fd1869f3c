/* Where numbers fall is told by data, how many there are by the command: ./histogram N BINS */
#include <stdlib.h>

int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    int bins = atoi(argv[2]);
    unsigned seed = 1;
    double *a = malloc(n * sizeof(double));
    long *count = calloc(bins, sizeof(long));
    for (long i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = seed / 4294967296.0;
    }
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        if (a[i] > 0.5)
            a[i] -= 0.25;
        else
            a[i] = a[i] * 2.0 + 1.0;
    }
    for (long i = 0; i < n; i++) {
        int bin = (int)(a[i] * bins) % bins;
        count[bin]++;
    }
    long most = 0;
    for (int b = 0; b < bins; b++)
        most = count[b] > most ? count[b] : most;
    return most == 0;
}
