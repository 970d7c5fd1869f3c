#!/bin/sh
# Records the program before and after the repair, three times each. Needs mpicc, mpirun (Open MPI), eztrace.
#
#     sh record.sh [DIRECTORY]         PRIORITY="chrt -f 10" sh record.sh where the machine is not quiet
set -eu
cd "$(dirname "$0")"
into=${1:-recorded}
gapwatch=${GAPWATCH:-gapwatch}

record() {
    for n in 1 2 3; do
        rm -rf "$into/$1-$n"
        $gapwatch stamp "$into/$1-$n" --build "$1" -- \
            ${PRIORITY:-} mpirun -n 2 eztrace -t openmpi -o "$into/$1-$n" "$2"
    done
}

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp galaxy.c Makefile "$build"
make -s -C "$build"
record v1 "$build/galaxy"
sed -i 's|return part \* n / ranks|return n * (1 - sqrt(1 - (double)part / ranks))|' "$build/galaxy.c"
make -s -C "$build"
record v2 "$build/galaxy"
