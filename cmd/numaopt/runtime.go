package main

import (
	"fmt"
	"os"
	"slices"

	"numaopt/internal/launch"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// underRuntime is the command that runs the program with numaopt's runtime, which
// writes down what samples do not tell in log.PID of each process. perf itself runs
// without it.
func underRuntime(std *stdio, opt profileOptions, machine topo.Topology, log string) ([]string, error) {
	if _, err := symbol.Describe(opt.program[0]); err != nil { // a static program, or one that the runtime cannot be loaded into
		fmt.Fprintf(std.err, "numaopt: %v: the program runs without numaopt's runtime\n", err)
		return opt.program, nil
	}
	run, err := trackedRun(opt, machine)
	if err != nil {
		return nil, err
	}
	run.Log = log
	environ, err := launchEnviron(run, os.Environ())
	if err != nil {
		return nil, err
	}
	return append(append([]string{"env"}, changed(os.Environ(), environ)...), opt.program...), nil
}

// trackedRun is the run file of a program that is sampled without a plan.
func trackedRun(opt profileOptions, machine topo.Topology) (runfile.Run, error) {
	run := runfile.Run{Mode: runfile.Track, System: runfile.Linux, Pinned: launch.Pinned(os.Environ())}
	bind := topo.Bind(opt.bind)
	if opt.bind == bindNone {
		bind, run.Pinned = topo.BindCompact, "bind none"
	}
	order, err := machine.Order(bind)
	if err != nil {
		return run, err
	}
	for _, c := range order {
		run.CPUs = append(run.CPUs, runfile.CPU{ID: c.ID, Node: int(c.Node)})
	}
	for _, n := range machine.Nodes {
		run.Nodes = append(run.Nodes, n.OS)
	}
	return run, nil
}

// changed is the variables of b that are not in a.
func changed(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(b), func(kv string) bool { return slices.Contains(a, kv) })
}
