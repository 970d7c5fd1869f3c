/* A program that goes on in the background, as daemons do, and computes there. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    if (daemon(1, 1))
        return 1;
    double sum = 0.0;
    while (clock() < 0.4 * CLOCKS_PER_SEC)
        for (int i = 1; i < 100000; i++)
            sum += sqrt(i);
    return sum < 0.0;
}
