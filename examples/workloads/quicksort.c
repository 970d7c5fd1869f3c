/* Quicksort of N pseudo-random whole numbers. */
#include <stdio.h>
#include <stdlib.h>

static void sort(int *a, long from, long to) {
    while (from < to) {
        int pivot = a[(from + to) / 2];
        long i = from, j = to;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) {
                int t = a[i];
                a[i++] = a[j], a[j--] = t;
            }
        }
        sort(a, from, j);
        from = i;
    }
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 50000;
    int *a = malloc(n * sizeof *a);
    unsigned seed = 12345;
    for (long i = 0; i < n; i++) a[i] = (seed = seed * 1103515245u + 12345u) >> 8;
    sort(a, 0, n - 1);
    printf("%d\n", a[n / 2]);
    return 0;
}
