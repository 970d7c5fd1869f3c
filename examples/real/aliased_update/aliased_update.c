/* Updates of three fields through pointers that might overlap. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 2000, PASSES = 1500000 };

#ifdef REPAIRED
#define OWN restrict
#else
#define OWN
#endif

__attribute__((noinline)) static void update_fields(float *OWN *OWN u, const float *OWN coefficient, int n)
{
    for (int i = 0; i < n; i++) {
#ifdef REPAIRED
        float *restrict a = u[0], *restrict b = u[1];
        a[i] = a[i] * coefficient[0] + b[i] * coefficient[1];
#else
        u[0][i] = u[0][i] * coefficient[0] + u[1][i] * coefficient[1];
#endif
    }
}

int main(void)
{
    float *u[2] = {malloc(sizeof(float) * N), malloc(sizeof(float) * N)}, coefficient[2] = {0.999f, 0.001f};
    for (int i = 0; i < N; i++)
        u[0][i] = u[1][i] = i;
    for (int pass = 0; pass < PASSES; pass++)
        update_fields(u, coefficient, N);
    printf("%f\n", u[0][N / 2]);
}
