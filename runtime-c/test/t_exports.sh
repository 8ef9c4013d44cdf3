#!/bin/sh
# The library's dynamic symbols are those of exports.map, no more and no fewer.
map=$(dirname "$0")/../exports.map
nm -D --defined-only "$LIB/libnumaopt.so" | awk '{print $NF}' | sort > "$SCRATCH.have"
sed -e 's#/\*.*\*/##' "$map" | tr ';' '\n' | sed -n 's/^ *\([A-Za-z_][A-Za-z_0-9]*\) *$/\1/p' | sort > "$SCRATCH.want"
diff -u "$SCRATCH.want" "$SCRATCH.have" || exit 1

# Of the installed libgomp: every entry that hands out work as it goes is among them.
gomp=$(ldconfig -p | sed -n 's/.*libgomp\.so\.1 .*x86-64.*=> //p' | head -n 1)
[ -n "$gomp" ] || { echo "no libgomp"; exit 77; }
nm -D --defined-only "$gomp" | sed -n 's/.* T \(GOMP_[a-z0-9_]*\)@.*/\1/p' | sort -u |
    grep -E '^GOMP_(loop_.*start|loop_start|sections2?_start|task|taskloop.*)$' | grep -v '_static_start$' > "$SCRATCH.gomp"
[ "$(wc -l < "$SCRATCH.gomp")" -gt 30 ] || { echo "$gomp: too few entries"; exit 1; }
missing=$(comm -23 "$SCRATCH.gomp" "$SCRATCH.have")
[ -z "$missing" ] || { echo "not interposed: $missing"; exit 1; }
