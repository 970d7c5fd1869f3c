/* Many threads, one after the other, that each compute for about a millisecond. */
#include <pthread.h>
#include <stdio.h>

static double sums[2];

static void *add_up(void *given)
{
    volatile double sum = 0.0;
    for (int i = 0; i < 400000; i++)
        sum += i * 0.5;
    *(double *)given = sum;
    return NULL;
}

int main(void)
{
    for (int step = 0; step < 400; step++) {
        pthread_t thread[2];
        for (int t = 0; t < 2; t++)
            pthread_create(&thread[t], NULL, add_up, &sums[t]);
        for (int t = 0; t < 2; t++)
            pthread_join(thread[t], NULL);
    }
    printf("%f\n", sums[0]);
}
