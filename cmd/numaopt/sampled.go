package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"numaopt/internal/ingest"
	"numaopt/internal/perfdata"
	"numaopt/internal/pmu"
	"numaopt/internal/profile"
	"numaopt/internal/record"
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
		Select: record.Faults, Better: record.BetterFaults}
	if from.recipe != nil {
		rec.Select, rec.Better, rec.SystemWide = append([]string{"-W"}, from.recipe.Select...), nil, from.recipe.SystemWide
		for _, note := range from.recipe.Notes {
			fmt.Fprintf(std.err, "numaopt: %s\n", note)
		}
	}
	fmt.Fprintf(std.err, "numaopt: sampling %s with perf %s, on this machine\n", map[string]string{sourcePMU: "loads and stores", sourceFaults: "page faults"}[from.name], perf.Version)
	r, err := perf.Record(context.WithoutCancel(ctx), rec)
	if err != nil {
		return cannot(err)
	}
	defer r.Close()
	if err := keepSampled(std, opt, machine, r); err != nil {
		fmt.Fprintf(std.err, "numaopt: the profile is lost: %v\n", err)
		return &exitError{code: max(r.Status, 1)}
	}
	if r.Status != 0 {
		return &exitError{code: r.Status}
	}
	return nil
}

// keepSampled makes and writes the profile of a recording.
func keepSampled(std *stdio, opt profileOptions, machine topo.Topology, r *record.Recording) error {
	f, err := perfdata.Open(r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols := new(symbol.Table)
	t, stats, err := sample.Read(f, sample.Options{Machine: machine, Symbols: symbols})
	if err != nil {
		return err
	}
	dir, _ := os.Getwd()
	p, err := ingest.Sampled(f, t, stats, profile.Run{Command: opt.program, Dir: dir, Version: version(), Topology: machine, Start: r.Start, ExitStatus: r.Status}, symbols)
	if err != nil {
		return err
	}
	p.Run.Elapsed = r.Elapsed
	if r.Migrated > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("NUMA balancing moved %s pages between nodes while the program ran (of all processes; the kernel's own count)", thousands(r.Migrated)))
	}
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
