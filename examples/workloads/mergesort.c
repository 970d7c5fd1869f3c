/* Merge sort of N pseudo-random whole numbers, from the bottom up. */
#include <stdio.h>
#include <stdlib.h>

static void merge(const int *a, int *out, long from, long middle, long to) {
    long i = from, j = middle;
    for (long k = from; k < to; k++)
        if (i < middle && (j >= to || a[i] <= a[j])) out[k] = a[i++];
        else out[k] = a[j++];
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 50000;
    int *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    unsigned seed = 12345;
    for (long i = 0; i < n; i++) a[i] = (seed = seed * 1103515245u + 12345u) >> 8;
    for (long width = 1; width < n; width *= 2) {
        for (long from = 0; from < n; from += 2 * width) {
            long middle = from + width < n ? from + width : n, to = from + 2 * width < n ? from + 2 * width : n;
            merge(a, b, from, middle, to);
        }
        int *swap = a;
        a = b, b = swap;
    }
    printf("%d\n", a[n / 2]);
    return 0;
}
