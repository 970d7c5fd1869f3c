/* Fast Fourier transform of 2^N complex numbers in place, radix 2, K times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void transform(long n, double *re, double *im, const double *cosine, const double *sine) {
    for (long i = 1, j = 0; i < n; i++) {
        long bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            double t = re[i];
            re[i] = re[j], re[j] = t;
            t = im[i], im[i] = im[j], im[j] = t;
        }
    }
    for (long half = 1; half < n; half *= 2)
        for (long from = 0; from < n; from += 2 * half)
            for (long k = 0; k < half; k++) {
                long a = from + k, b = a + half, w = k * (n / (2 * half));
                double x = re[b] * cosine[w] - im[b] * sine[w], y = re[b] * sine[w] + im[b] * cosine[w];
                re[b] = re[a] - x, im[b] = im[a] - y;
                re[a] += x, im[a] += y;
            }
}

int main(int argc, char **argv) {
    long n = 1L << (argc > 1 ? atol(argv[1]) : 14), times = argc > 2 ? atol(argv[2]) : 2;
    double *re = malloc(n * sizeof *re), *im = calloc(n, sizeof *im);
    double *cosine = malloc(n * sizeof *cosine), *sine = malloc(n * sizeof *sine);
    for (long i = 0; i < n; i++) re[i] = i % 17, cosine[i] = cos(2 * M_PI * i / n), sine[i] = -sin(2 * M_PI * i / n);
    for (long k = 0; k < times; k++) transform(n, re, im, cosine, sine);
    printf("%g\n", re[1]);
    return 0;
}
