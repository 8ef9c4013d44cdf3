#!/bin/sh
# Programs that the library must not disturb: each turn ends as it does alone.
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
never() { # never NAME PATTERN TEXT
    ! printf '%s\n' "$3" | grep -Eq "$2" || fail "$1: /$2/ in: $3"
}
with() { # with RUN COMMAND...: stdout and stderr under the library, and the status
    run=$1; shift
    LD_PRELOAD=$lib NUMAOPT_RUN=$run timeout 60 "$@" 2>&1
    echo "status $?"
}
run_file() { # run_file RANGES KIND POLICY... > file: every KIND of at least a page is object 1
    printf '%s\n' 'numaopt-run 1' 'mode apply' 'sys linux' 'mark 0' "page-ranges $1"
    taskset -pc $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print "cpu", i, 0 }'
    printf '%s\n' 'node 0 0' 'module 0 - -'
    echo "object 1 $2 -1 0 1 4096 1000000000 $3 obj"
    echo 'frame 1 0 0 0 1000000000'
}

# ---- mappings ----
${CC:-cc} -O2 -o mapping "$src/mapping.c" || exit 1
{ run_file 0 mapping 'bind 0'; echo 'touched 1 1*256'; } > touch.run
for turn in none readonly; do
    text=$(with touch.run ./mapping $turn)
    want "$turn" '^ok$' "$text"
    want "$turn" '^status 0$' "$text"
done

{ run_file 1000 mapping 'pages -'; echo 'map 1 0*100 -*20 0*136'; } > parts.run
want "inner mremap" '^ok$' "$(with parts.run ./mapping inner)"

run_file 1000 mapping 'bind 0' > bind.run
want "trimmed mapping" '^numaopt: obj: 256 of 256 touched pages' "$(with bind.run ./mapping trim)"

# ---- ends ----
${CC:-cc} -O2 -o end "$src/end.c" || exit 1
run_file 100 heap 'bind 0' > heap.run
want "stderr given away" '^status 0$' "$(with heap.run ./end stderr)"
want "only the program's data" '^DATA$' "$(cat data.bin)"
never "only the program's data" numaopt "$(cat data.bin)"

for file in no-such-program ./no-such-program ./heap.run; do
    text=$(with heap.run ./end exec $file)
    want "exec of $file fails" '^numaopt: obj: 25[0-9] of 25[0-9] touched pages on plan' "$text"
    want "exec of $file fails" '^status 0$' "$text"
done

# each process reports the one block that it placed itself, once: parent and third child
{ cat heap.run; echo "summary forks.jsonl"; } > forks.run
rm -f forks.jsonl
want "forks" '^status 0$' "$(with forks.run ./end forks)"
want "forks: two of four processes report" '^2$' "$(grep -c '"program":"./end"' forks.jsonl)"
want "forks: a block each" '^2$' "$(grep -c '"instances":1,"pages":25[67],"touched":25[67],' forks.jsonl)"

# ---- forks while other threads hold locks ----
${CC:-cc} -O2 -pthread -o forks "$src/forks.c" || exit 1
{ run_file 1000 heap 'x-wise -'; echo "object 2 mapping -1 0 1 4096 1000000000 interleave 1 maps"; echo 'frame 2 0 0 0 1000000000'
  echo "summary many.jsonl"; } > many.run
for turn in '' load; do
    rm -f many.jsonl
    want "forks $turn" '^0 of 200 children failed$' "$(with many.run ./forks 200 $turn)"
    want "forks $turn: each process reports" '^201$' "$(grep -c '"program":"./forks"' many.jsonl)"
done

exit $failures
