/* The butterflies of a transform whose length is the next power of two: ./butterflies N */
#include <math.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int wanted = atoi(argv[1]), n = 1, stages = 0;
    while (n < wanted) {
        n *= 2;
        stages = stages + 1;
    }
    double *re = calloc(n, sizeof(double)), *im = calloc(n, sizeof(double));
    for (int half = 1; half < n; half *= 2) {
        double angle = 3.14159265358979 / half;
        for (int start = 0; start < n; start += 2 * half)
            for (int k = 0; k < half; k++) {
                double c = cos(angle * k), s = sin(angle * k);
                double x = re[start + k + half] * c - im[start + k + half] * s;
                re[start + k + half] = re[start + k] - x;
                re[start + k] += x;
            }
    }
    for (int width = n; width > 1; width >>= 1)
        re[width - 1] += 1.0;
    return re[0] < -1.0;
}
