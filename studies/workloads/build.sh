#!/bin/sh
# Build the programs of programs.yaml, fetched into one folder, for one processor: build.sh SOURCES TO [OPTIONS]
set -eu
sources=$1 to=$2 options=${3:--O2}
mkdir -p "$to"
to=$(cd "$to" && pwd)
cd "$sources"

# NPB writes -fopenmp nowhere unless asked: its parallel loops run on one thread.
npb() (
    cd NPB3.0-omp-C
    printf '%s\n' 'CC = gcc' 'CLINK = gcc' 'C_LIB = -lm' 'C_INC = -I../common' "CFLAGS = $options -w -std=gnu89" \
        'CLINKFLAGS =' 'UCC = gcc -O -std=gnu89' 'BINDIR = ../bin' 'RAND = randdp' 'WTIME = wtime.c' > config/make.def
    mkdir -p bin
    for name in bt cg ep ft is lu mg sp; do
        (cd common && rm -f -- *.o) && (cd "$(echo "$name" | tr '[:lower:]' '[:upper:]')" && rm -f -- *.o)
        make -s "$name" CLASS="${1:-S}" && cp "bin/$name.${1:-S}" "$to/npb-$name"
    done
)
npb
g++ $options -w -DUSE_MPI=0 -o "$to/lulesh" LULESH/lulesh*.cc -lm
for name in XSBench RSBench; do
    gcc $options -w -std=gnu99 -fopenmp -o "$to/$(echo "$name" | tr '[:upper:]' '[:lower:]')" $name/openmp-threading/*.c -lm
done
(cd CoMD/src-mpi && cp Makefile.vanilla Makefile && mkdir -p ../bin && make -s clean && make -s CC=gcc DO_MPI=OFF \
    OPTFLAGS="$options -w" && cp ../bin/CoMD-serial "$to/comd")
g++ $options -w -o "$to/hpccg" HPCCG/*.cpp
g++ $options -w -o "$to/pennant" PENNANT/src/*.cc
