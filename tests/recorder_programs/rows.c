/* Multiplies a matrix of n rows with a vector: with 2900 it comes from memory, the vector from a cache. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    long n = count > 1 ? atol(words[1]) : 300;
    double *a = malloc(n * n * sizeof *a), *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    for (long i = 0; i < n * n; i++)
        a[i] = i & 7;
    for (long i = 0; i < n; i++)
        x[i] = 1;
    for (long round = 0; round < 1200000000 / (n * n); round++) {
        for (long i = 0; i < n; i++) {
            double sum = 0;
            for (long k = 0; k < n; k++)
                sum += a[i * n + k] * x[k]; /* line 18 */
            y[i] = sum;
        }
        x[round % n] = y[round % n] > 0;
    }
    printf("%g\n", y[n / 2]);
    free(a), free(x), free(y);
}
