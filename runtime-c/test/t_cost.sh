#!/bin/sh
# t_cost.sh [LIB [PYTHON]]: instructions of the program with a plan whose one heap
# object never occurs, against those without the runtime, counted by callgrind.
# Limits: an ordinary program 1 %, a pure malloc and free loop 10 %.
lib=${1:-${LIB:?}}
python=${2:-$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null || echo /usr/bin/python3)}
dir=${SCRATCH:-$(mktemp -d)}; mkdir -p "$dir"
command -v valgrind > /dev/null || { echo "valgrind is not installed (apt install valgrind)"; exit 77; }
[ -x "$python" ] || { echo "no python3"; exit 77; }
cat > "$dir/never.run" <<'R'
numaopt-run 1
mode apply
sys linux
mark 0
page-ranges 16382
cpu 0 0
node 0 0
summary /dev/null
module 0 0000000000000000000000000000000000000000 /nowhere/absent
object 1 heap 0 0 1 65536 4194304 bind 0 never
frame 1 0 0 4096 4100
R
cat > "$dir/loop.c" <<'C'
#include <stdlib.h>
int main(void) {
    for (long i = 0; i < 1000000; i++) {
        void *volatile p = malloc(16 + i % 32 * 16);
        free(p);
    }
    return 0;
}
C
${CC:-cc} -O2 -o "$dir/loop" "$dir/loop.c" || exit 1
# Valgrind 3.19 gives up at clang's debug information.
strip -g -o "$dir/libnumaopt.so" "$lib/libnumaopt.so" || exit 1
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 > /dev/null | sed -n 's/.*refs: *//p' | tr -d ', '
}
compare() {
    name=$1 limit=$2; shift 2
    without=$(instructions "$@")
    with=$(LD_PRELOAD=$dir/libnumaopt.so NUMAOPT_RUN=$dir/never.run instructions "$@")
    echo "$name $without $with $limit" | awk '{ pct = 100 * ($3 - $2) / $2
        printf "%s: %d instructions, with the runtime %d: %.2f %% (limit %d %%)\n", $1, $2, $3, pct, $4
        exit pct > $4 }'
}
compare loop 10 "$dir/loop" || failed=1
compare python3 1 "$python" -c 'print(sum(len(str(i)) for i in range(100000)), sorted(map(hash, map(str, range(20000))))[0])' || failed=1
exit ${failed:-0}
