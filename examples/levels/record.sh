#!/bin/sh
# Records one program four times, so that its bounds are known from machine peak to wall-clock time:
# a trace (times), callgrind (instructions, misses), gapwatch count (operations of the source), and puts them into one
# directory. Needs mpicc, mpirun, eztrace, valgrind; the machine model of gapwatch machines probe.
#
#     sh record.sh [DIRECTORY [COLUMNS [ROWS [ITERATIONS]]]]
set -eu
cd "$(dirname "$0")"
run=${1:-run}
shift $(($# > 0))
launch=${MPIRUN:-mpirun -n 2}
gapwatch=${GAPWATCH:-gapwatch}

make -s
rm -rf "$run"
mkdir -p "$run/counts"
$launch eztrace -t "openmpi posixio" -o "$run/trace" ./heat "$@"
$launch valgrind --tool=callgrind --dump-instr=yes --cache-sim=yes \
    --callgrind-out-file="$run/counts/callgrind.out.%p" ./heat "$@" 2>"$run/valgrind.log"
$gapwatch incore "$run/counts" --machine probed --write "$run/heat.operations.json"
$gapwatch count heat.c --write "$run/heat.source.operations.json" --program heat -- $launch ./heat "$@"
rm -r "$run/counts"
$gapwatch advise "$run" --machine probed
