#!/bin/sh
# Runs a program under cachegrind with the data cache of the P2SC (128 KiB, lines of 128 B, four ways, nothing behind it)
# and prints its estimated seconds at 120 MHz: a cycle for each instruction, 50 for each line that the cache lacks (this
# number is assumed). The same on every machine, however loaded it is.
valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,128 --D1=131072,4,128 --LL=4194304,16,128 \
    --cachegrind-out-file=/dev/null "$@" 2>&1 >/dev/null | tr -d ',' | awk '
    / I +refs:/ {i = $4} / D1 +misses:/ {d = $4}
    END {if (i == "") exit 1; printf "seconds %.9f\n", (i + 50 * d) / 120e6}'
