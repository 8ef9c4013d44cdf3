#!/bin/bash
# The log of real programs: nothing is missing and nothing is twice, in threads, handlers,
# forked children, executed images and killed processes; no program dies of a full disk.
src=$(dirname "$0")/programs
lib=$LIB/libnumaopt.so
mkdir -p "$SCRATCH" && cd "$SCRATCH" || exit 1
case $src in /*) ;; *) src=$OLDPWD/$src ;; esac
case $lib in /*) ;; *) lib=$OLDPWD/$lib ;; esac
failures=0
fail() { failures=$((failures + 1)); echo "FAIL: $*"; }
same() { [ "$2" = "$3" ] || fail "$1: $2, want $3"; }

${CC:-cc} -O2 -o readlog "$src/readlog.c" && gcc -O2 -fno-builtin-malloc -fno-builtin-free -fopenmp -pthread -o gcc "$src/diary.c" || exit 1
programs=gcc
clang -O2 -fno-builtin -fopenmp -pthread -o clang "$src/diary.c" 2> /dev/null && programs="gcc clang" || echo "no clang with libomp: that half is left out"
export OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive OMP_DYNAMIC=false KMP_TOPOLOGY_METHOD=flat

run_file() { # run_file DIRECTORY [LINE] > file
    printf '%s\n' 'numaopt-run 1' 'mode track' 'sys linux' 'mark 0' "${2:-pinned bind none}" "log $1/log"
    taskset -pc $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print "cpu", i, 0 }'
    echo node 0 0
}
run_file "$PWD" > log.run
# Runs the program under the library and leaves its logs as text: PID.txt, all of them in all.txt.
logged() { # logged PROGRAM ARGS...
    rm -f log.[0-9]* ./*.txt
    timeout 60 env LD_PRELOAD=$lib NUMAOPT_RUN=log.run "$@" 2> stderr
    status=$?
    for f in log.[0-9]*; do
        ./readlog "$f" > "${f#log.}.txt" || fail "$*: $f is broken"
    done
    cat [0-9]*.txt > all.txt
    grep -Eq '^log pid [0-9]+ lost 0 ' all.txt || fail "$*: records are lost"
    cat stderr
}
count() { grep -Ec "$1" "${2:-all.txt}"; }
# Allocations of blocks(), by their sizes.
ours() { awk '$2 == "alloc" && $4 < 12000 && $4 % 1000 == 96' "${1:-all.txt}" | wc -l; }

for p in $programs; do
    logged ./$p threads 5000
    same "$p threads" $status 0
    for rank in 1 2 3; do # each allocation has a line, ordinals are dense, as many frees
        tid=$(awk -v r=$rank '$2 == "start" && $3 == r { print $1; exit }' all.txt)
        awk -v t="$tid" -v r=$rank '$1 == t && $2 == "alloc" && $11 == r { if ($13 != n++) bad++; live[$3]++ }
            $1 == t && $2 == "free" { if (live[$3]-- != 1) bad++; freed++ } $1 == t && $2 == "end" { end++ }
            END { exit !(n == 5000 && freed == 5000 && !bad && end == 1) }' all.txt || fail "$p threads: rank $rank"
    done
    same "$p: ends" "$(count '^[0-9]+ end ')" 4
    awk '$2 == "site" { for (i = 8; i <= NF; i++) if ($i == "0") exit 1; if (NF != 7 + $4) exit 1 }' all.txt || fail "$p: frames"
    same "$p: modules" "$(count " module .*/$p\$")" 1
    same "$p: not bound" "$(count ' start [0-9]+ -1 -1 ')" "$(count ' start ')"

    logged ./$p signals 3000
    same "$p signals" $status 0
    [ "$(count ' alloc .* kind 2 ')" -gt 0 ] || fail "$p signals: no handler's allocation"
    same "$p signals: regions" "$(count ' region [1-9][0-9]* ')" 9000

    logged ./$p regions 10
    same "$p: regions" "$(count ' region [1-9][0-9]* ') $(count ' region 0 ')" "30 30"
    same "$p: instances" "$(awk '$2 == "region" && $3 { print $5 }' all.txt | sort -n | uniq -c | awk '$1 != 3' | wc -l)" 0
    [ "$(count ' loop [1-9][0-9]* ')" -ge 30 ] || fail "$p: loops: $(count ' loop [1-9][0-9]* ')"
    same "$p: of one thread each" "$(awk '$2 == "region" { print $1 }' all.txt | sort -u | wc -l)" 3
done

logged ./gcc forks 100
same "forks" $status 0
same "forks: a log each" "$(echo log.[0-9]* | wc -w)" 3
parent=$(grep -l ' hello ' [0-9]*.txt)
child=$(grep -l " forked ${parent%.txt} " [0-9]*.txt)
grandchild=$(grep -l " forked ${child%.txt} " [0-9]*.txt)
same "forks: whose blocks" "$(ours "$parent") $(ours "$child") $(ours "$grandchild")" "200 100 100"
for f in $parent $child $grandchild; do
    [ -n "$f" ] || { fail "forks: a log is missing"; break; }
    same "forks: only its own records in $f" "$(awk '$2 !~ /^[0-9]|pid/ { print $1 }' $f | sort -u)" "${f%.txt}"
done
at=$(awk '$2 == "alloc" && $4 == 65536 { print $3 }' "$parent")
at=$((at - at % 4096))
same "forks: homes of what the parent made" "$(count " homes $at 17 " "$parent") $(count " homes $at 17 " "$child")" "1 0"
same "forks: begins with" "$(awk '/^log pid/ { at = NR } at && NR > at && NR < at + 3 { printf "%s ", $2 }' "$child")" "forked start "
same "forks: votes of the clone" "$(sed -n 's/^log.*small //p' "$grandchild")" 1

began=$(date +%s%N)
logged ./gcc idle 200
same "idle children" $status 0
same "idle children: a log of the parent only" "$(echo log.[0-9]* | wc -w)" 1
[ $(($(date +%s%N) - began)) -lt 2000000000 ] || fail "idle children: slow"

logged ./gcc many 3000
same "many threads" $status 0
same "many threads: starts and ends" "$(count ' start ') $(count '^[0-9]+ end ')" "3001 3000"
[ "$(stat -c %b log.[0-9]*)" -lt 8192 ] || fail "many threads: $(stat -c %b log.[0-9]*) blocks"

began=$(date +%s%N)
logged ./gcc reserve
[ $status = 77 ] && echo "no room for large reserves: that part is left out" || {
    same "reserve" $status 0
    [ $(($(date +%s%N) - began)) -lt 4000000000 ] || fail "reserve: slow"
    same "reserve: homes" "$(awk '$2 == "alloc" && $4 >= 2^41 { a = $3 } $2 == "homes" && a && $3 >= a && $3 < a + 2^41 { printf "%s ", $8 }' all.txt | tr -d -- '- ')" 0000000000000000
}

logged ./gcc small 4000
same "small" $status 0
awk '$1 == "small" { n += $3; if ($3 > most) most = $3 } END { exit !(n > 900 && most > 0.9 * n) }' all.txt || fail "small: $(grep '^small' all.txt)"

logged ./gcc execs 100
same "execs" $status 0
same "execs: one log" "$(echo log.[0-9]* | wc -w)" 1
[ "$(sed -n 's/^log.*small //p' all.txt)" -lt 20 ] || fail "execs: the first image's table: $(grep '^log' all.txt)"
same "execs: two images" "$(count ' hello ')" 2
same "execs: blocks" "$(awk '$2 == "hello" { i++ } $2 == "alloc" && $4 % 1000 == 96 { n[i]++ } END { print (n[1] >= 10), (n[2] > 0), (n[2] < 10) }' all.txt)" "1 1 1"

logged ./gcc killed 1000
same "killed" $status 137
same "killed: blocks" "$(ours)" 1000

logged ./gcc bound
[ $status = 77 ] && echo "no memory policy here: that part is left out" || {
    same "bound" $status 0
    at=$(awk '$2 == "alloc" && $4 == 1048576 { print $3 }' all.txt)
    zeros=$(printf '%0128d' 0)
    grep -Eq " bind $at 524288 65538 1 " all.txt || fail "bound: $(grep ' bind ' all.txt)"
    same "bound: moves" "$(awk -v a="$at" '$2 == "move" { print $3 - a, $4, $5 }' all.txt | tr '\n' ' ')" "0 2 0 16384 1 0 "
    grep -Eq ' prefer 1 1 ' all.txt || fail "bound: $(grep ' prefer ' all.txt)"
    same "homes" "$(awk -v a="$at" '$2 == "homes" && $3 == a { print $4, $8 }' all.txt)" "256 $zeros${zeros//0/-}"
    awk '$2 == "alloc" && $4 == 524288 { a = $3 } $2 == "homes" && $3 <= a && a && a < $3 + 4096 { asked++ }
        $2 == "free" && a && $3 == a { exit 0 } END { exit asked != 1 }' all.txt || fail "homes of what is freed"
    gcc -O2 -fopenmp -I"${lib%/lib/*}/include" -o api "$src/api.c" -L"${lib%/numaopt/*}" -lnumaopt-api -Wl,-rpath,"${lib%/numaopt/*}" || exit 1
    NUMAOPT_NODES=2 logged ./api > api.out
    same "the linkable library" $status 0
    [ "$(count ' bind [0-9]+ [0-9]+ 6553[79] 1 ')" -gt 0 ] || fail "the linkable library's policies: $(grep ' bind ' all.txt)"
}

logged ./gcc pins
[ $status = 77 ] && echo "one CPU: that part is left out" || {
    same "pins" $status 0
    same "pins: who" "$(awk '$2 == "pinned" { print $8 }' all.txt)" sched_setaffinity
    [ "$(count ' start 0 [0-9]* .* pinned 1$')" -ge 1 ] || fail "pins: no CPU: $(grep ' start ' all.txt)"
    same "pins: once it is let go" "$(awk '$2 == "start" && $3 == 0 { cpu = $4 " " $NF } END { print cpu }' all.txt)" "-1 0"
}

# Forks while others hold locks; allocators that start the runtime while they hold theirs.
for p in forks blocks; do ${CC:-cc} -O2 -fno-builtin -pthread -o $p "$src/$p.c" || exit 1; done
logged ./forks 50 load
same "forks of a busy program" $status 0
same "forks of a busy program: logs" "$(count ' forked ')" 50
for allocator in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
    so=$(ldconfig -p | sed -n "s/.*$allocator .*=> //p" | head -n 1)
    [ -n "$so" ] || { echo "no $allocator: left out"; continue; }
    for order in "$so $lib" "$lib $so"; do
        rm -f log.[0-9]*
        timeout 60 env LD_PRELOAD="$order" NUMAOPT_RUN=log.run ./blocks > stderr 2>&1 || fail "blocks under '$order': $(cat stderr)"
        for f in log.[0-9]*; do ./readlog "$f" > /dev/null || fail "blocks under '$order': $f is broken"; done
    done
done

# Bound threads know their CPU.
run_file "$PWD" 'page-ranges 0' > bind.run
cp log.run none.run && cp bind.run log.run
logged ./gcc threads 10
same "bound: not on a CPU" "$(count ' start [0-9]+ -1 ')" 0
cp none.run log.run

# No room: of the file, of the disk; with the calls of old kernels, too.
full() { # full NAME COMMAND...: as logged, but records are lost and it is said
    rm -f log.[0-9]* ./*.txt
    name=$1; shift
    timeout 60 env LD_PRELOAD=$lib NUMAOPT_RUN=${run:-log.run} "$@" 2> stderr
    same "$name" $? 0
    for f in ${dir:-.}/log.[0-9]*; do ./readlog "$f" > all.txt || fail "$name: the log is broken"; done
    lost=$(sed -n 's/^log pid .* lost \([0-9]*\) .*/\1/p' all.txt)
    same "$name: errno" "$(od -An -tu4 -j60 -N4 $(echo ${dir:-.}/log.[0-9]* | cut -d' ' -f1) | tr -d ' ')" ${errno:-27}
    [ "${lost:-0}" -gt 0 ] && [ "$(count ' alloc ')" -gt 1000 ] || fail "$name: $lost lost, $(count ' alloc ') allocations"
}
for old in '' './gcc old' './gcc older'; do
    (failures=0; ulimit -f $((4200 + 256)); full "small files $old" $old ./gcc blocks 20000; exit $failures) || fail "small files $old"
    run=disk.run dir=$PWD/disk errno=28
    run_file "$dir" > disk.run && mkdir -p disk
    export -f full same fail count; export lib run dir errno
    unshare -m true 2> /dev/null || { echo "no mount namespace: the full disk is left out"; run= dir= errno=; continue; }
    unshare -m bash -c "failures=0; mount -t tmpfs -o size=320k none disk && { full 'a full disk $old' $old ./gcc blocks 20000; exit \$failures; }" || fail "a full disk $old"
    run= dir= errno=
done
run=log.run; full "limited later" ./gcc older ./gcc limited 20000
(failures=0; ulimit -v 800000; logged ./gcc threads 100; same "little address space" "$status $(ours)" "0 300"; [ $(stat -c %s log.[0-9]*) -le $((800000 * 1024 / 16)) ] || fail "a large part of it"; exit $failures) || fail "little address space"
(failures=0; ulimit -f 100; rm -f log.[0-9]*; LD_PRELOAD=$lib NUMAOPT_RUN=log.run ./gcc blocks; same "no room at all" $? 0; exit $failures) || fail "no room at all"
exit $failures
