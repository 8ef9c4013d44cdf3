package main

import (
	"cmp"
	"fmt"
	"os"

	"numaopt/internal/launch"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// underRuntime is the environment in which the program runs with numaopt's runtime, which
// writes down what samples do not tell in log.PID of each process, and how its threads
// are bound.
func underRuntime(std *stdio, opt profileOptions, machine topo.Topology, log string) (environ []string, bind string, err error) {
	if _, err := symbol.Describe(opt.program[0]); err != nil { // a static program, or one that the runtime cannot be loaded into
		if opt.plan != "" {
			return nil, "", err
		}
		fmt.Fprintf(std.err, "numaopt: %v: the program runs without numaopt's runtime\n", err)
		return os.Environ(), bindNone, nil
	}
	run, bind, err := trackedRun(std, opt, machine)
	if err != nil {
		return nil, "", err
	}
	run.Log = log
	environ, err = launchEnviron(run, os.Environ())
	return environ, bind, err
}

// trackedRun is the run file of a program that is sampled, and how its threads are
// bound: as --bind says, else as the plan, else compactly, as in emulation. All nodes
// of the machine are in it, with CPUs or not, in its order.
func trackedRun(std *stdio, opt profileOptions, machine topo.Topology) (runfile.Run, string, error) {
	if opt.plan != "" {
		run, bind, err := planRun(std, opt, machine, runfile.Linux)
		if err == nil && len(run.Nodes) != len(machine.Nodes) {
			err = fmt.Errorf("a plan is not sampled on a machine that has nodes without CPUs: use numaopt apply under perf, and numaopt import")
		}
		return run, string(bind), err
	}
	run := runfile.Run{Mode: runfile.Track, System: runfile.Linux, Pinned: launch.Pinned(os.Environ())}
	bind := cmp.Or(opt.bind, string(topo.BindCompact))
	on := topo.Bind(bind)
	if bind == bindNone {
		on, run.Pinned = topo.BindCompact, "bind none"
	}
	order, err := machine.Order(on)
	if err != nil {
		return run, "", err
	}
	for _, c := range order {
		run.CPUs = append(run.CPUs, runfile.CPU{ID: c.ID, Node: int(c.Node)})
	}
	for _, n := range machine.Nodes {
		run.Nodes = append(run.Nodes, n.OS)
	}
	return run, bind, nil
}
