#!/bin/bash
# Worksharing loops of unmodified programs under every schedule, by gcc, clang and
# gfortran: every iteration runs once, the results are those of the program alone,
# the chunks are where the plan says, and the summary counts them.
src=$(dirname "$0")/programs
lib=$LIB/libnumaopt.so
mkdir -p "$SCRATCH" && cd "$SCRATCH" || exit 1
case $src in /*) ;; *) src=$OLDPWD/$src ;; esac
case $lib in /*) ;; *) lib=$OLDPWD/$lib ;; esac
failures=0
fail() { failures=$((failures + 1)); echo "FAIL: $*"; }
export OMP_NUM_THREADS=8 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 KMP_BLOCKTIME=0 OMP_DYNAMIC=false

# Return addresses of calls to $2, of which in functions that match $3.
sites() {
    objdump -d --no-show-raw-insn "$1" | awk -v call="<($2)@plt>" -v of="$3" '
        /^[0-9a-f]+ <.*>:$/ { name = $2 }
        after { sub(":", "", $1); print $1; after = 0 }
        $0 ~ "call.*" call && name ~ of { after = 1 }'
}
# Run file: 4 nodes of 2 CPUs each, all loops of the program under schedule $4.
run_file() { # run_file FILE RUNTIME SITES SCHEDULE [PROGRAM]
    echo numaopt-run 1; echo mode apply; echo sys linux; echo mark 0; echo page-ranges 1000
    for c in 0 1 2 3 4 5 6 7; do echo cpu $c $((c / 2)); done
    for n in 0 1 2 3; do echo node $n 0; done
    echo pinned test; echo summary "$PWD/summary"
    echo "module 0 - $PWD/$1"
    for f in $1 $5; do echo "read ${read_id:-$(readelf -n $f | awk '/Build ID/ { id = $3 } END { print id ? id : "-" }')} $PWD/$f"; done
    for l in linux-vdso ld-linux-x86-64 libc libm libgomp libomp libgfortran libquadmath libgcc_s libpthread libdl librt; do echo "plain $l"; done
    id=0
    for s in $3; do echo "loop $id $2 0 0x$s $4 at $s"; id=$((id + 1)); done
}
count() { sed 's/.*"loops"://; s/],"threads.*//' summary | grep -o "\"$1\":[0-9]*" | awk -F: '{ n += $2 } END { print n + 0 }'; }

check() { # check PROGRAM RUNTIME SITES PERMUTED LEFT
    ./$1 > $1.alone || { fail "$1 alone"; return; }
    grep -E 'WRONG|^own [1-9]|^ own *[1-9]| F$' $1.alone && fail "$1 alone"
    [ -n "$3" ] || fail "$1 has no loops"
    for schedule in "inverse -" "nodes 1,2,3,0" "nodes 2,3,0,1" "block-exclusive 4,1,0,1,2,3"; do
        run_file $1 $2 "$3" "$schedule" > $1.run
        rm -f summary
        LD_PRELOAD=$lib NUMAOPT_RUN=$1.run ./$1 > $1.out || fail "$1 under $schedule"
        diff <(grep -v ^who $1.alone) <(grep -v ^who $1.out) || fail "$1 under $schedule: other results"
        case $schedule in block*) # few regions run four times in a row
            [ $(($(count permuted) + $(count left))) = $(($4 + $5)) ] || fail "$1 under $schedule: $(count permuted) permuted, $(count left) left"
            continue ;;
        esac
        [ "$(count permuted) $(count left)" = "$4 $5" ] || fail "$1 under $schedule: $(count permuted) permuted, $(count left) left, want $4 and $5"
        grep -q ^who $1.out || continue
        case $schedule in inverse*) who="7 0" ;; "nodes 1,2,3,0") who="6 5" ;; *) who="4 3" ;; esac
        [ "$(grep -c '^who [a-z_0-9]* \(8\|9\|1000\): 0 7$' $1.alone)" = 27 ] || fail "$1 alone: chunks of other threads"
        [ "$(grep -c "^who [a-z_0-9]* \\(8\\|9\\|1000\\): $who\$" $1.out)" = 27 ] || fail "$1 under $schedule: chunks of other threads: $(grep '^who.*1000' $1.out)"
    done
}

command -v objdump > /dev/null || { echo "no objdump"; exit 77; }
gcc -O2 -fopenmp -o schedules.gcc "$src/schedules.c" || exit 1
check schedules.gcc gomp "$(sites schedules.gcc omp_get_thread_num '^<(loop_|orphan)')" 95 7
# The program is another build than the one that was read.
read_id=ab run_file schedules.gcc gomp "$(sites schedules.gcc omp_get_thread_num '^<(loop_|orphan)')" "inverse -" > unread.run
rm -f summary
LD_PRELOAD=$lib NUMAOPT_RUN=unread.run ./schedules.gcc > unread.out || fail "not read"
[ "$(count permuted) $(count left)" = "0 102" ] || fail "not read: $(count permuted) permuted, $(count left) left"
grep -q 'a file is loaded that was not read.*schedules.gcc' summary || fail "not read, and not said"
if clang -O2 -fopenmp -o schedules.clang "$src/schedules.c" 2> /dev/null; then
    check schedules.clang kmp "$(sites schedules.clang '__kmpc_for_static_init_[48]u?')" 109 7
else
    echo "no clang with libomp: that part is left out"
fi
if command -v gfortran > /dev/null; then
    gfortran -O2 -fopenmp -o schedules.f "$src/schedules.f90" || exit 1
    check schedules.f gomp "$(sites schedules.f omp_get_thread_num)" 6 0
else
    echo "no gfortran: that part is left out"
fi

# What is not put in force is said: of a file that is not loaded, or in another build; a
# wrapper has nothing to say of the program that it starts.
missing() { # missing RUN-FILE PATTERN PROGRAM
    rm -f summary
    LD_PRELOAD=$lib NUMAOPT_RUN=$1 $3 > missing.out || fail "$3"
    grep -q "$2" summary || fail "$3 with $1: no /$2/ in: $(cat summary)"
}
not_loaded="of a file that this program did not load, or not in that build: lost"
{ run_file schedules.gcc gomp 1 "inverse -" | sed 's/^loop/module 1 - gone.so\n&/'; echo "loop 1 gomp 1 0x10 inverse - lost"; } > missing.run
missing missing.run '"warnings":\["in the plan, but not met in this run of the program: at 1","in the plan, but '"$not_loaded" ./schedules.gcc
missing missing.run '"warnings":\[\]' /bin/true
{ run_file libgomp.so.1 gomp "" "" | sed 's/^module 0 - .*/module 0 00aa libgomp.so.1/'; echo "loop 0 gomp 0 0x10 inverse - lost"; } > other.run
missing other.run "$not_loaded" ./schedules.gcc

# A parallel loop in a serial one, with another region after it: who runs the first
# of its eight iterations. A started thread has sweeps, and a team, of its own.
cat > sweep.c <<'C'
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int me;
#pragma omp threadprivate(me)
static __thread int who[64], ran[64], total;
static void sweep(int trips) {
    int *w = who, *r = ran;
    for (int i = 0; i < trips; i++) {
#pragma omp parallel for schedule(static)
        for (int j = 0; j < 8; j++) {
            __atomic_fetch_add(&r[i], 1 << 2 * j, __ATOMIC_RELAXED);
            if (j == 0)
                w[i] = me;
        }
    }
}
static void other(void) {
    int n = 0;
#pragma omp parallel for schedule(static) reduction(+ : n)
    for (int j = 0; j < 80; j++)
        n += j;
    total += n;
}
static void *all(void *arg) {
    int *trips = arg;
#pragma omp parallel
    me = omp_get_thread_num();
    for (; *trips; trips++) {
        sweep(*trips);
        other();
        for (int i = 0; i < *trips; i++) {
            printf("%d%s", who[i], ran[i] == 0x5555 ? "" : "WRONG");
            ran[i] = 0;
        }
        printf(" ");
    }
    printf("%d\n", total);
    return 0;
}
int main(int argc, char **argv) {
    int trips[20] = {0};
    pthread_t t;
    for (int k = 1; k < argc; k++)
        trips[k - 1] = atoi(argv[k]);
    all(trips);
    pthread_create(&t, 0, all, trips);
    pthread_join(t, 0);
    return 0;
}
C
swept() { # swept PROGRAM RUNTIME SITES SCHEDULE TRIPS WANT
    run_file $1 $2 "$3" "$4" > $1.run
    rm -f summary
    text=$(LD_PRELOAD=$lib NUMAOPT_RUN=$1.run ./$1 $5 | tr '\n' /)
    [ "$text" = "$6" ] || fail "$1 under $4 in sweeps of $5: $text, want $6"
}
for compiler in gcc clang; do
    $compiler -O2 -fopenmp -fno-inline -o sweep.$compiler sweep.c 2> /dev/null || continue
    case $compiler in
    gcc) call=omp_get_thread_num runtime=gomp at=$(sites sweep.gcc $call '^<sweep' | head -n 1) ;;
    *) call='__kmpc_for_static_init_4' runtime=kmp at=$(sites sweep.clang $call | head -n 1) ;;
    esac
    swept sweep.$compiler $runtime "$at" "block-exclusive 8,1,0,1,2,3" "8 8" "00664422 00664422 6320/00664422 00664422 6320/"
    [ "$(count permuted) $(count left)" = "32 0" ] || fail "sweep.$compiler: $(count permuted) permuted, $(count left) left"
    swept sweep.$compiler $runtime "$at" "block-exclusive 8,3,2,1,0,3" "8" "44660022 3160/44660022 3160/"
    swept sweep.$compiler $runtime "$at" "block-exclusive 5,1,0,1,2,3" "5 5" "00642 00642 6320/00642 00642 6320/"
    swept sweep.$compiler $runtime "$at" "block-exclusive 5,1,0,1,2,3" "6 5" "006420 00000 6320/000000 00000 6320/"
    swept sweep.$compiler $runtime "$at" "block-exclusive 5,1,0,1,2,3" "4 5" "0064 00000 6320/0000 00000 6320/"
    [ "$(count permuted) $(count left)" = "5 13" ] || fail "sweep.$compiler: $(count permuted) permuted, $(count left) left"
    grep -q 'its sweep is not as long as in the plan.*4 instances, 5 in the plan' summary || fail "sweep.$compiler: not said: $(cat summary)"
done

# Loops of a file that is loaded while the program runs, with a runtime of its own.
cat > plugin.c <<'C'
int once(int n) {
    int sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}
C
cat > load.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    for (int k = 1; k < argc; k++) {
        void *h = dlopen(argv[k], RTLD_NOW | RTLD_LOCAL);
        int (*once)(int) = h ? (int (*)(int))dlsym(h, "once") : 0;
        if (!once)
            return 1;
        printf("%d %d\n", once(1000), once(7));
    }
    return 0;
}
C
gcc -o load load.c -ldl || exit 1
for compiler in gcc clang; do
    $compiler -O2 -fopenmp -shared -fPIC -o plugin.so plugin.c 2> /dev/null || continue
    case $compiler in gcc) call=omp_get_thread_num runtime=gomp ;; *) call='__kmpc_for_static_init_4' runtime=kmp ;; esac
    run_file plugin.so $runtime "$(sites plugin.so $call)" "inverse -" load > load.run
    sed '/^read .*plugin.so$/d' load.run > unread.run
    for name in ./plugin.so plugin.so; do
        rm -f summary
        text=$(LD_LIBRARY_PATH=$PWD LD_PRELOAD=$lib NUMAOPT_RUN=load.run ./load $name)
        [ "$text" = "499500 21" ] || fail "$name by $compiler: $text"
        [ "$(count permuted) $(count left)" = "2 0" ] || fail "$name by $compiler: $(count permuted) permuted, $(count left) left"
        rm -f summary
        LD_LIBRARY_PATH=$PWD LD_PRELOAD=$lib NUMAOPT_RUN=unread.run ./load $name > unread.out
        [ "$(count permuted) $(count left)" = "0 2" ] || fail "$name by $compiler, not read: $(count permuted) permuted, $(count left) left"
    done
done
exit $failures
