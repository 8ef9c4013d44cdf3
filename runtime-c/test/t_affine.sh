#!/bin/bash
# Loops that hand out their work, of unmodified programs by gcc and clang, under an
# affine schedule: every iteration runs once, the results are those of the program
# alone, each node does its own part, and the summary counts the loops.
src=$(dirname "$0")/programs
lib=$LIB/libnumaopt.so
mkdir -p "$SCRATCH" && cd "$SCRATCH" || exit 1
case $src in /*) ;; *) src=$OLDPWD/$src ;; esac
case $lib in /*) ;; *) lib=$OLDPWD/$lib ;; esac
failures=0
fail() { failures=$((failures + 1)); echo "FAIL: $*"; }
export OMP_NUM_THREADS=8 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 KMP_BLOCKTIME=0 OMP_DYNAMIC=false OMP_CANCELLATION=true
command -v objdump > /dev/null || { echo "no objdump"; exit 77; }

# Return addresses of calls to $2.
sites() {
    objdump -d --no-show-raw-insn "$1" | awk -v call="<($2)@plt>" '
        after { sub(":", "", $1); print $1; after = 0 }
        $0 ~ "call.*" call { after = 1 }'
}
# Run file: 4 nodes of 2 CPUs each, and what stands for the loops.
run_file() { # run_file PROGRAM RUNTIME SCHEDULE SITES
    echo numaopt-run 1; echo mode apply; echo sys linux; echo mark 0; echo page-ranges 1000
    for c in 0 1 2 3 4 5 6 7; do echo cpu $c $((c / 2)); done
    for n in 0 1 2 3; do echo node $n 0; done
    echo pinned test; echo summary "$PWD/summary"
    [ "$3" = all ] && { echo affine 1; return; }
    echo "module 0 - $PWD/$1"
    id=0
    for s in $4; do echo "loop $id $2 0 0x$s $3 at $s"; id=$((id + 1)); done
}
count() { sed 's/.*"loops"://; s/],"threads.*//' summary | grep -o "\"$1\":[0-9]*" | awk -F: '{ n += $2 } END { print n + 0 }'; }
plain() { grep -v '^who [h0-9]' "$1" | sed 's/^\(lastprivate.*\): LOST/\1: right/'; }
starts='GOMP_(parallel_)?loop_(ull_)?((maybe_)?nonmonotonic_)?(dynamic|guided|runtime)(_start)?|__kmpc_dispatch_init_[48]u?'

for compiler in gcc clang; do
    p=affine.$compiler runtime=gomp
    [ $compiler = clang ] && runtime=kmp
    if ! $compiler -O2 -fopenmp -o $p "$src/affine.c" 2> /dev/null; then
        [ $compiler = gcc ] && exit 1
        echo "no clang with libomp: that part is left out"
        continue
    fi
    ./$p > $p.alone || fail "$p alone"
    grep WRONG $p.alone && fail "$p alone"
    sites="$(sites $p "$starts")"
    for schedule in "affine -" all "inverse -"; do
        run_file $p $runtime "$schedule" "$sites" > $p.run
        rm -f summary
        LD_PRELOAD=$lib NUMAOPT_RUN=$p.run ./$p > $p.out || fail "$p under $schedule"
        diff <(plain $p.alone) <(plain $p.out) || fail "$p under $schedule: other results"
        case $schedule in
        "affine -") # gcc also asks for empty loops; libomp 14 makes teams of 2 at times after num_threads(2)
            case $compiler in gcc) want=666 all=1012 ;; *) want=500 all=693 ;; esac
            [ "$(count permuted)" -ge $want ] && [ $(($(count permuted) + $(count left))) = $all ] ||
                fail "$p: $(count permuted) affine, $(count left) left" ;;
        "inverse -")
            grep -q "it hands out its work while it runs" summary || fail "$p: no word on inverse"
            [ "$(count permuted)" = 0 ] || fail "$p: $(count permuted) permuted"
            continue ;;
        esac
        grep -q LOST $p.out && fail "$p under $schedule: lastprivate"
        home=$(sed -n 's/^who \([0-9]*\)$/\1/p' $p.out) helped=$(sed -n 's/^who helped //p' $p.out)
        [ "$home" -ge 32 ] || fail "$p under $schedule: $home of 64 iterations at home"
        [ "$helped" -ge 4 ] || fail "$p under $schedule: $helped of 16 iterations helped with"
    done
done

# schedule(runtime): permuted where it is static and the chunks are OpenMP's own.
cat > runtime.c <<'C'
#include <omp.h>
#include <stdio.h>
static int by[80];
int main(void) {
    int n = 80, last = -1;
#pragma omp parallel for schedule(runtime) lastprivate(last)
    for (int i = 0; i < n; i++)
        by[i] = omp_get_thread_num(), last = i;
#pragma omp parallel for schedule(runtime)
    for (unsigned long i = 0; i < 80; i++)
        by[i] += 10 * omp_get_thread_num();
    for (int i = 0; i < n; i += 10)
        printf("%d ", by[i]);
    printf("%d\n", last);
    return 0;
}
C
gcc -O2 -fopenmp -o runtime runtime.c || exit 1
run_file runtime gomp "inverse -" "$(sites runtime "$starts")" > runtime.run
at_run_time() { # at_run_time OMP_SCHEDULE OUTPUT WORD-IN-SUMMARY
    rm -f summary
    text=$(OMP_SCHEDULE=$1 LD_PRELOAD=$lib NUMAOPT_RUN=runtime.run ./runtime)
    case $text in $2) ;; *) fail "OMP_SCHEDULE=$1: $text" ;; esac
    grep -q "$3" summary || fail "OMP_SCHEDULE=$1: no $3 in the summary"
}
at_run_time static "77 66 55 44 33 22 11 0 79" '"permuted":1,"left":0'
at_run_time static,10 "0 11 22 33 44 55 66 77 79" "its schedule at run time is chunked"
at_run_time dynamic "* 79" "it hands out its work while it runs"
run_file runtime gomp "affine -" "$(sites runtime "$starts")" > runtime.run
at_run_time static "0 11 22 33 44 55 66 77 79" "its schedule at run time is static"
at_run_time guided "* 79" '"permuted":1,"left":0'

# What libomp calls static, and is not one chunk a thread.
cat > other.c <<'C'
#include <stdio.h>
int main(void) {
    int sum = 0, n = 100;
#pragma omp parallel for schedule(static, 4) reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += i;
#pragma omp teams distribute reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += i;
    printf("%d\n", sum);
    return 0;
}
C
if clang -O2 -fopenmp -o other other.c 2> /dev/null; then
    run_file other kmp "inverse -" "$(sites other '__kmpc_for_static_init_[48]u?')" > other.run
    rm -f summary
    text=$(LD_PRELOAD=$lib NUMAOPT_RUN=other.run ./other)
    [ "$text" = 9900 ] || fail "chunked and distributed: $text"
    grep -q "chunked, or distributed" summary || fail "no word on a chunked loop"
    [ "$(count permuted)" = 0 ] || fail "a chunked loop was permuted"
fi
exit $failures
