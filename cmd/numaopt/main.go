// Numaopt finds out which NUMA node every page of a program is used from, plans
// where the pages should be, and runs the unmodified program with that plan.
//
//	numaopt doctor                                  what can be measured here
//	numaopt profile -o app.nprof -- ./app ARGS      where every page is used from
//	numaopt report  app.nprof                       sharing, remote accesses, who touched first
//	numaopt plan    app.nprof -o app.plan.yaml      what should be where, and why
//	numaopt apply   app.plan.yaml -- ./app ARGS     run with the plan in force
//	numaopt check   app.nprof --max-remote 10       gate for CI
//	numaopt diff    before.nprof after.nprof        what got worse, and why
//	numaopt import  perf.data -o app.nprof          a profile of what perf recorded elsewhere
//	numaopt stat    -- ./app ARGS                   local and remote traffic from counters
//	numaopt lab     --topology 4x2 -- ./app ARGS    the same in a four-node virtual machine
//
// Results go to stdout; progress, warnings and errors to stderr. Exit status: 0
// done, 1 a check failed, 2 bad usage or input, 3 this machine cannot measure
// what was asked. Commands that run a program end with its status.
package main

import (
	"os"
	"runtime"
)

func main() {
	// Memory that is never touched, but counted when the next collection is set:
	// most commands end before one has paid for itself.
	ballast := make([]byte, 32<<20)
	ctx, stop := signalContext()
	code := run(ctx, &stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:])
	stop()
	runtime.KeepAlive(ballast)
	os.Exit(code)
}
