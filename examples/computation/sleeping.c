/* Work goes from one thread to another. The one that waits looks for it every 5 ms; repaired, it is told. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn; /* whose step it is */
static int steps = 300;
static double value[2];

static void wait_for(int me)
{
    pthread_mutex_lock(&lock);
    while (turn != me) {
#ifdef REPAIRED
        pthread_cond_wait(&changed, &lock);
#else
        pthread_mutex_unlock(&lock);
        usleep(5000);
        pthread_mutex_lock(&lock);
#endif
    }
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    int me = *(int *)argument;
    for (int step = 0; step < steps; step++) {
        wait_for(me);
        for (int i = 0; i < 50000; i++)
            value[me] += sqrt(i + value[1 - me]);
        pthread_mutex_lock(&lock);
        turn = 1 - me;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int names[2] = {0, 1};
    pthread_t thread;
    if (argc > 1)
        steps = atoi(argv[1]);
    pthread_create(&thread, NULL, work, &names[1]);
    work(&names[0]);
    pthread_join(thread, NULL);
    printf("%.10g\n", value[0] + value[1]);
    return 0;
}
