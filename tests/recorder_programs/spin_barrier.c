/* Two threads that meet in a barrier of their own: the first has a quarter of the work, and spins until the other comes.
   A step is much longer than a time slice, at whose ends samples are taken. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#define THREADS 2
static atomic_int arrived, turn;
static double sums[THREADS][64];

static void meet(int *mine)
{
    *mine = !*mine;
    if (atomic_fetch_add(&arrived, 1) == THREADS - 1) {
        atomic_store(&arrived, 0);
        atomic_store(&turn, *mine);
    } else
        while (atomic_load(&turn) != *mine)
            ;
}

static double add_roots(long n)
{
    double s = 0;
    for (long i = 1; i <= n; i++)
        s += sqrt((double)i) / (i + 0.5);
    return s;
}

static void *run(void *argument)
{
    int me = (int)(long)argument, mine = 0;
    for (int step = 0; step < 10; step++) {
        sums[me][0] += add_roots(me ? 16000000 : 4000000);
        meet(&mine);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    printf("%g\n", sums[0][0] + sums[1][0]);
    return 0;
}
