package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"numaopt/internal/ingest"
	"numaopt/internal/launch"
	"numaopt/internal/perfdata"
	"numaopt/internal/pmu"
	"numaopt/internal/profile"
	"numaopt/internal/record"
	"numaopt/internal/runfile"
	"numaopt/internal/sample"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// The sources of accesses.
const (
	sourceAuto    = "auto"
	sourcePMU     = "pmu"
	sourceFaults  = "faults"
	sourceEmulate = "emulate"
)

// source is where accesses of a run can be seen.
type source struct {
	name   string
	recipe *pmu.Recipe // for pmu
}

// choose settles the source. What auto tries is said on stderr, with the reason
// why the better ones are not taken.
func choose(std *stdio, opt profileOptions) (source, error) {
	if opt.source == sourceEmulate {
		return source{name: sourceEmulate}, nil
	}
	if opt.source == sourceAuto && (opt.topology != "" || opt.plan != "" || opt.affine) {
		return source{name: sourceEmulate}, nil
	}
	host, hostErr := topo.ReadMachine(os.DirFS("/"))
	if opt.source == sourceAuto && (hostErr != nil || len(host.Nodes) < 2) {
		return source{name: sourceEmulate}, nil
	}
	var refused []string
	if opt.source != sourceFaults {
		recipe, err := recipe(opt)
		if err == nil {
			return source{sourcePMU, recipe}, nil
		}
		if opt.source == sourcePMU {
			if errors.Is(err, pmu.ErrNone) {
				err = cannot(err)
			}
			return source{}, err
		}
		refused = append(refused, err.Error())
	}
	_, err := record.FindPerf()
	if err == nil {
		if len(refused) > 0 {
			fmt.Fprintf(std.err, "numaopt: source: page faults, not pmu: %s\n", strings.Join(refused, "; "))
		}
		return source{name: sourceFaults}, nil
	}
	if opt.source == sourceFaults {
		return source{}, cannot(err)
	}
	fmt.Fprintf(std.err, "numaopt: source: emulation, not pmu: %s; nor page faults: %v\n", strings.Join(refused, "; "), err)
	return source{name: sourceEmulate}, nil
}

// recipe is how the processor at hand samples addresses.
func recipe(opt profileOptions) (*pmu.Recipe, error) {
	o := pmu.Options{Latency: opt.ldlat, Frequency: opt.frequency}
	if opt.period > 1 {
		o.Period = opt.period
	}
	return pmu.Choose(pmu.Read(os.DirFS("/")), o)
}

// runSampled profiles a run by samples of the kernel's: the program runs at its own
// speed, on this machine.
func runSampled(ctx context.Context, std *stdio, opt profileOptions, from source) error {
	// Also of CPUs that numaopt may not use: the program may bind itself elsewhere.
	machine, err := topo.ReadMachine(os.DirFS("/"))
	if err != nil {
		return err
	}
	perf, err := record.FindPerf()
	if err != nil {
		return cannot(err)
	}
	rec := record.PerfOptions{Command: opt.program, Stdin: std.in, Stdout: std.out, Stderr: std.err,
		Select: []string{"-e", "page-faults:u", "-c", "1"}}
	if from.recipe != nil {
		rec.Select, rec.SystemWide = append([]string{"-W"}, from.recipe.Select...), from.recipe.SystemWide
		for _, note := range from.recipe.Notes {
			fmt.Fprintf(std.err, "numaopt: %s\n", note)
		}
	}
	fmt.Fprintf(std.err, "numaopt: sampling %s with perf %s, on this machine\n", map[string]string{sourcePMU: "loads and stores", sourceFaults: "page faults"}[from.name], perf.Version)
	dir, err := os.MkdirTemp("", "numaopt-log-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if rec.Command, err = underRuntime(std, opt, machine, dir); err != nil {
		return err
	}
	r, err := perf.Record(context.WithoutCancel(ctx), rec)
	if err != nil {
		return cannot(err)
	}
	defer r.Close()
	if err := keepSampled(std, opt, machine, r, logIn(dir)); err != nil {
		fmt.Fprintf(std.err, "numaopt: the profile is lost: %v\n", err)
		return &exitError{code: max(r.Status, 1)}
	}
	if r.Status != 0 {
		return &exitError{code: r.Status}
	}
	return nil
}

// logIn is the name of the runtime's logs in a directory, without their process ids.
func logIn(dir string) string { return filepath.Join(dir, "log") }

// underRuntime is the command that runs the program with numaopt's runtime, which
// writes down in dir what samples do not tell. perf itself runs without it.
func underRuntime(std *stdio, opt profileOptions, machine topo.Topology, dir string) ([]string, error) {
	if _, err := symbol.Describe(opt.program[0]); err != nil { // a static program, or one that the runtime cannot be loaded into
		fmt.Fprintf(std.err, "numaopt: %v: the program runs without numaopt's runtime\n", err)
		return opt.program, nil
	}
	run, err := trackedRun(opt, machine)
	if err != nil {
		return nil, err
	}
	run.Log = logIn(dir)
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

// keepSampled makes and writes the profile of a recording; log is the name of the
// runtime's logs.
func keepSampled(std *stdio, opt profileOptions, machine topo.Topology, r *record.Recording, log string) error {
	f, err := perfdata.Open(r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols := new(symbol.Table)
	t, stats, err := sample.Read(f, sample.Options{Machine: machine, Symbols: symbols, Log: log})
	if err != nil {
		return err
	}
	dir, _ := os.Getwd()
	p, err := ingest.Sampled(f, t, stats, profile.Run{Command: opt.program, Dir: dir, Bind: opt.bind, Version: version(), Topology: machine, Start: r.Start, ExitStatus: r.Status}, symbols)
	if err != nil {
		return err
	}
	p.Run.Elapsed = r.Elapsed
	file, err := keepProfile(opt.out, p)
	if file == "" {
		return err
	}
	if err != nil {
		fmt.Fprintf(std.err, "numaopt: %v; the profile is in %s\n", err, file)
	}
	saySampled(std, file, p, t, stats)
	return nil
}

// saySampled tells what a profile of samples holds, and what comes next.
func saySampled(std *stdio, file string, p *profile.Profile, t *sample.Table, stats *sample.Stats) {
	for _, w := range p.Warnings {
		fmt.Fprintf(std.err, "numaopt: warning: %s\n", w)
	}
	fmt.Fprintf(std.err, "numaopt: %s: %s samples on %s pages by %d threads of %s\n", file, thousands(stats.Used), thousands(uint64(len(p.Pages))), ranks(p), t.Command)
	fmt.Fprintf(std.err, "numaopt: next: numaopt report %s\n", file)
}
