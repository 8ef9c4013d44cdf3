#!/bin/sh
# The library's dynamic symbols are those of exports.map, no more and no fewer.
map=$(dirname "$0")/../exports.map
nm -D --defined-only "$LIB/libnumaopt.so" | awk '{print $NF}' | sort > "$SCRATCH.have"
sed -e 's#/\*.*\*/##' "$map" | tr ';' '\n' | sed -n 's/^ *\([A-Za-z_][A-Za-z_0-9]*\) *$/\1/p' | sort > "$SCRATCH.want"
diff -u "$SCRATCH.want" "$SCRATCH.have"
