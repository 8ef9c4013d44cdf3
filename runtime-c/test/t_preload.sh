#!/bin/sh
# The library in real programs on this machine: with glibc's and other
# allocators, libgomp and libomp, fork, exec, threads that end by pthread_exit.
src=$(dirname "$0")/programs
lib=$LIB/libnumaopt.so
mkdir -p "$SCRATCH" && cd "$SCRATCH" || exit 1
case $src in /*) ;; *) src=$OLDPWD/$src ;; esac
case $lib in /*) ;; *) lib=$OLDPWD/$lib ;; esac
failures=0
fail() { failures=$((failures + 1)); echo "FAIL: $*"; }
want() { # want NAME PATTERN TEXT
    printf '%s\n' "$3" | grep -Eq "$2" || fail "$1: no /$2/ in: $3"
}
cpus=$(nproc)
first=$(sed -n 's/^Cpus_allowed_list:\t\([0-9]*\).*/\1/p' /proc/self/status)
all=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)

${CC:-cc} -O2 -pthread -o affinity "$src/affinity.c" || exit 1
# clang takes a malloc whose block is not used for one that succeeds
${CC:-cc} -O2 -fno-builtin -pthread -o blocks "$src/blocks.c" || exit 1
gcc -O2 -fopenmp -o team.gcc "$src/team.c" || exit 1
clang -O2 -fopenmp -o team.clang "$src/team.c" 2> /dev/null || echo "no clang with libomp: that half is left out"

run_file() { # run_file MODE SYS > file; 4x2 where emulated, this machine's CPUs on one node else
    echo numaopt-run 1; echo mode $1; echo sys $2; echo mark 0; echo page-ranges 1000
    if [ $2 = emulated ]; then
        for c in 0 1 2 3 4 5 6 7; do echo cpu $c $((c / 2)); done
        for n in 0 1 2 3; do echo node $n $n; done
    else
        taskset -pc $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print "cpu", i, 0 }'
        echo node 0 0
    fi
}
run_file bind linux > bind.run
run_file bind emulated > emulated.run
# every allocation of at least a page is an object: unwinding, placing and read-back all the time
{ run_file apply linux; echo "module 0 - -"; echo "object 1 heap -1 0 1 4096 1000000000 x-wise - all"
  echo "frame 1 1 0 0 1000000000"; echo "object 2 mapping -1 0 1 4096 1000000000 interleave 1 maps"; echo "frame 2 0 0 0 1000000000"
} > all.run

text=$(LD_PRELOAD=$lib ./blocks 2>&1) || fail "blocks without a run file"
want "inert without a run file" '^numaopt: NUMAOPT_RUN is not set: the program runs as it is$' "$text"
want "one line" '^1$' "$(printf '%s\n' "$text" | sed '/^$/d' | sort -u | wc -l)"
text=$(LD_PRELOAD=$lib NUMAOPT_RUN=/nowhere ./team.gcc 2>&1)
want "unreadable run file" 'numaopt: /nowhere: ENOENT.*runs as it is' "$text"
printf 'numaopt-run 1\nfoo\n' > broken.run
text=$(LD_PRELOAD=$lib NUMAOPT_RUN=broken.run ./team.gcc 2>&1)
want "broken run file" 'numaopt: broken.run:2: .*runs as it is' "$text"
want "broken run file" '^threads ' "$text"

text=$(LD_PRELOAD=$lib NUMAOPT_RUN=bind.run ./affinity 2>&1)
for where in main exec spawned again; do want bound "^$where: real $first view $cpus$" "$text"; done
for where in fork shell; do want unbound "^$where: real $all view $cpus$" "$text"; done
want "three threads" '^3$' "$(printf '%s\n' "$text" | grep -c '^thread: ')"

for team in team.gcc team.clang; do
    [ -x $team ] || continue
    text=$(LD_PRELOAD=$lib NUMAOPT_RUN=bind.run ./$team 2>&1)
    want "$team bound" "^threads $cpus procs $cpus sum 4294901760 cpus $first" "$text"
    if command -v qemu-x86_64 > /dev/null; then
        text=$(KMP_TOPOLOGY_METHOD=flat OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 \
            qemu-x86_64 -E LD_PRELOAD=$lib -E NUMAOPT_RUN=emulated.run ./$team 2>&1)
        want "$team emulated" '^threads 8 procs 8 sum 4294901760 cpus 0 1 2 3 4 5 6 7$' "$text"
    else
        echo "no qemu-x86_64: the emulated half is left out"
    fi
done

# hundreds of captured variables, host teams, the entry for an if clause
if [ -x team.clang ]; then
    export OMP_WAIT_POLICY=passive KMP_TOPOLOGY_METHOD=flat OMP_THREAD_LIMIT=64
    clang -O2 -fopenmp -shared -fPIC -o libkmp_if.so "$src/kmp_if.c" && clang -O2 -fopenmp -o many "$src/many.c" -L. -lkmp_if -Wl,-rpath,"$PWD" || exit 1
    alone=$(./many if 2>&1)
    want "alone" '^many [0-9]+ few 33 teams 4950 if 5$' "$alone"
    [ "$(LD_PRELOAD=$lib NUMAOPT_RUN=bind.run ./many if 2>&1)" = "$alone" ] || fail "many arguments, handed on"
    { sed 's/^mark 0/mark 1/' bind.run; echo "only 0x1 $PWD/many"; } > window.run
    [ "$(LD_PRELOAD=$lib NUMAOPT_RUN=window.run ./many if 2>&1)" = "$alone" ] || fail "many arguments, through the trampoline"
    unset OMP_WAIT_POLICY KMP_TOPOLOGY_METHOD OMP_THREAD_LIMIT
fi

for allocator in '' libjemalloc.so.2 libtcmalloc_minimal.so.4; do
    so=; [ -z "$allocator" ] || so=$(ldconfig -p | sed -n "s/.*$allocator .*=> //p" | head -n 1)
    [ -z "$allocator" ] || [ -n "$so" ] || { echo "no $allocator: left out"; continue; }
    for order in "$so $lib" "$lib $so"; do
        for run in bind all; do
            text=$(LD_PRELOAD=$order NUMAOPT_RUN=$run.run timeout 100 ./blocks 2>&1) || fail "blocks under '$order', $run.run: $text"
        done
    done
    want "objects under '$allocator'" 'numaopt: all: [0-9]+ of [0-9]+ touched pages on plan' "$text"
done
exit $failures
