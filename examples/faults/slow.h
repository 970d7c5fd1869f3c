/* A slower machine than this one: calls that take longer by the --*-cost options, inside the call. */
#ifndef SLOW_H
#define SLOW_H

#include "options.h"

/* From now on calls take longer, writes and fsync those to one file; NULL: all as long as they take. */
void slow_down(const struct options *options, int file);

#endif
