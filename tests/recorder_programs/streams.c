/* Adds arrays: with an argument of 16 million numbers they come from memory, with one of 2000 from the first cache. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    long n = count > 1 ? atol(words[1]) : 2000;
    double *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b), *c = calloc(n, sizeof *c);
    for (long i = 0; i < n; i++)
        b[i] = c[i] = i;
    for (long round = 0; round < 800000000 / n; round++)
        for (long i = 0; i < n; i++)
            a[i] = b[i] + 0.5 * c[i]; /* line 13 */
    printf("%g\n", a[n / 2]);
    free(a), free(b), free(c);
}
