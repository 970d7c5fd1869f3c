/* A stencil whose arrays are accessed through macros, and whose type is one: ./accessors N STEPS */
#include <stdlib.h>
#define DTYPE double
#define RADIUS 2
#define INDEX(i, j) ((i) + (size_t)(j) * n) /* columns */
#define IN(i, j) in[INDEX(i, j)]
#define OUT(i, j) out[INDEX(i, j)]
#define WEIGHT(k) weight[(k) + RADIUS]

int main(int argc, char **argv)
{
    const int n = atoi(argv[1]), steps = atoi(argv[2]);
    DTYPE *in = malloc(sizeof(DTYPE) * n * n), *out = malloc(sizeof(DTYPE) * n * n), weight[2 * RADIUS + 1];
    for (int k = -RADIUS; k <= RADIUS; k++)
        WEIGHT(k) = (DTYPE)k;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            IN(i, j) = OUT(i, j) = (DTYPE)(i + j);
    for (int t = 0; t < steps; t++)
        for (int j = RADIUS; j < n - RADIUS; j++)
            for (int i = RADIUS; i < n - RADIUS; i++)
                for (int k = -RADIUS; k <= RADIUS; k++)
                    OUT(i, j) += WEIGHT(k) * IN(i + k, j);
    return OUT(3, 3) > 1e30;
}
