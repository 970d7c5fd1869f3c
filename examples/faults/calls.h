/* The library calls of the loop: slower by the --*-cost options, and with --work sleep without burning CPU time. */
#ifndef CALLS_H
#define CALLS_H

#include "options.h"

/* From now on calls follow the options, writes and fsync those to one file; NULL: all are as they are. */
void calls_follow(const struct options *options, int file);

#endif
