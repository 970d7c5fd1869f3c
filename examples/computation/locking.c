/* Threads add each result to one sum under one lock; repaired, each adds up its own and the lock is taken once. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long n = 20000000;
static double total;

static void *work(void *argument)
{
    long me = *(int *)argument;
    double mine = 0.0;
    for (long i = me; i < n; i += THREADS) {
        double term = 1.0 / (1.0 + (double)i);
#ifdef REPAIRED
        mine += term;
#else
        pthread_mutex_lock(&lock);
        total += term;
        pthread_mutex_unlock(&lock);
#endif
    }
    pthread_mutex_lock(&lock);
    total += mine;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int names[THREADS];
    if (argc > 1)
        n = atol(argv[1]);
    for (int t = 0; t < THREADS; t++) {
        names[t] = t;
        pthread_create(&thread[t], NULL, work, &names[t]);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    printf("%.6f\n", total);
    return 0;
}
