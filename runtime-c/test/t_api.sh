#!/bin/sh
# The linkable library in programs: its header in every language and compiler, C, C++
# and Fortran programs on pretended nodes, under a kernel that refuses, and beside
# the preloaded library.
here=$(cd "$(dirname "$0")" && pwd)
src=$here/programs
lib=$(cd "$LIB/.." && pwd)
include=$(cd "$LIB/../../include" && pwd)
preload=$(cd "$LIB" && pwd)/libnumaopt.so
mkdir -p "$SCRATCH" && cd "$SCRATCH" || exit 1
failures=0
fail() { failures=$((failures + 1)); echo "FAIL: $*"; }
want() { # want NAME PATTERN TEXT
    printf '%s\n' "$3" | grep -Eq "$2" || fail "$1: no /$2/ in: $3"
}
have() { command -v "$1" > /dev/null || { echo "no $1: left out"; return 1; }; }

# What it exports is what the header declares, each name.
nm -D --defined-only "$lib/libnumaopt-api.so" | awk '{ print $NF }' | sort > have.txt
${CC:-cc} -E -P -I"$include" -x c "$include/numaopt.h" | grep -o 'numaopt_[a-z_]* *(' | tr -d ' (' | sort -u > want.txt
[ "$(wc -l < want.txt)" -ge 22 ] || fail "the header declares $(wc -l < want.txt) functions"
diff want.txt have.txt || fail "header and library differ"

# The header is clean by itself.
strict="-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -I$include"
echo '#include <numaopt.h>' > h.c
for cc in gcc clang; do
    have $cc && { $cc -std=c11 $strict -Wstrict-prototypes h.c || fail "header, $cc"; }
done
for cxx in g++ clang++; do
    for std in c++11 c++20; do
        have $cxx && { $cxx -std=$std $strict -x c++ h.c || fail "header, $cxx $std"; }
    done
done

# build NAME COMPILER FLAGS...: with the shared library, found where it is.
build() {
    name=$1; shift
    "$@" -O2 -g -fopenmp -I"$include" -L"$lib" -lnumaopt-api -Wl,-rpath,"$lib" -o "$name" || fail "build of $name"
}
programs="gcc static"
build gcc gcc -std=gnu11 -Wall -Wextra -Wpedantic -Werror "$src/api.c"
gcc -O2 -fopenmp -I"$include" "$src/api.c" "$lib/libnumaopt-api.a" -o static || fail "static"
echo 'int main(void) { return 0; }' > t.c
for c in clang clang++; do
    have $c && $c -fopenmp t.c -o t 2> /dev/null || { echo "no OpenMP of $c: left out"; continue; }
    if [ $c = clang ]; then build $c $c -std=gnu11 "$src/api.c"; else build $c $c -x c++ -std=c++17 "$src/api.c" -x none; fi
    programs="$programs $c"
done
have g++ && { build g++ g++ -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror "$src/api.c" -x none && programs="$programs g++"; }
have gfortran && { build gfortran gfortran -std=f2008 -Wall -Wno-unused-dummy-argument "$include/numaopt.f90" "$src/api.f90" && programs="$programs gfortran"; }

# The same numbers on any number of nodes and threads.
for p in $programs; do
    for nodes in 1 2 3 4 8; do
        for threads in 1 3 8; do
            out=$(NUMAOPT_NODES=$nodes OMP_NUM_THREADS=$threads ./$p 2> err) || fail "$p, $nodes nodes, $threads threads: $out $(cat err)"
            want "$p" "^same, $nodes nodes" "$out"
        done
    done
done

# Refused: the same numbers, one line.
out=$(NUMAOPT_NODES=4 ./gcc seccomp 2> err)
[ $? = 77 ] && echo "no seccomp here: left out" || {
    want seccomp '^same, 4 nodes, error 1, home unknown' "$out"
    want seccomp 'does not place memory here.*: Operation not permitted' "$(cat err)"
    [ "$(wc -l < err)" = 2 ] || fail "seccomp: $(cat err)" # the other is of the empty array
    [ -z "$(NUMAOPT_QUIET=1 NUMAOPT_NODES=4 ./gcc seccomp 2>&1 > /dev/null)" ] || fail "NUMAOPT_QUIET is not quiet"
}
want "bad NUMAOPT_NODES" 'NUMAOPT_NODES is no number from 1 to 64.*: 65x' "$(NUMAOPT_NODES=65x ./gcc 2>&1)"

# Beside the preloaded library, which binds threads and places an array by itself.
{
    echo numaopt-run 1; echo mode apply; echo sys linux; echo mark 0; echo page-ranges 1000
    taskset -pc $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print "cpu", i, 0 }'
    echo node 0 0
} > apply.run
for p in $programs; do
    out=$(NUMAOPT_NODES=4 NUMAOPT_RUN=$PWD/apply.run LD_PRELOAD=$preload ./$p 2> err) || fail "$p with preload: $out $(cat err)"
    want "$p with preload" '^same, 4 nodes' "$out"
done

[ $failures = 0 ]
