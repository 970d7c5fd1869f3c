/* A merge sort from below, and an insertion sort whose inner loop the data end: ./merge N */
#include <stdlib.h>

static int least(int a, int b)
{
    return a < b ? a : b;
}

static void merge(const double *from, double *to, int low, int middle, int high)
{
    int i = low, j = middle;
    for (int k = low; k < high; k++)
        to[k] = i < middle && (j >= high || from[i] <= from[j]) ? from[i++] : from[j++];
}

int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    double *a = malloc(n * sizeof(double)), *b = malloc(n * sizeof(double));
    unsigned seed = 7;
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = seed;
    }
    for (int width = 1; width < n; width <<= 1) {
        for (int low = 0; low < n; low += 2 * width)
            merge(a, b, low, least(low + width, n), least(low + 2 * width, n));
        for (int i = 0; i < n; i++)
            a[i] = b[i];
    }
    for (int i = 1; i < n; i++) {
        double x = b[i];
        int j = i;
        while (j > 0 && b[j - 1] > x) {
            b[j] = b[j - 1];
            j--;
        }
        b[j] = x;
    }
    return 0;
}
