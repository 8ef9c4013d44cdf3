package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"numaopt/internal/access"
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

// host is the machine that samples: its files and its kernel.
type host struct {
	root fs.FS
	open pmu.Opener
}

// here is this machine, where h is none.
func (h host) here() host {
	if h.root == nil {
		return host{os.DirFS("/"), unix.PerfEventOpen}
	}
	return h
}

// source is where accesses of a run can be seen.
type source struct {
	name   string
	recipe *pmu.Recipe // for pmu and faults
}

// choose settles the source. What auto tries is said on stderr, with the reason
// why the better ones are not taken.
func choose(std *stdio, opt profileOptions) (source, error) {
	h := opt.host.here()
	if opt.source == sourceEmulate {
		return source{name: sourceEmulate}, nil
	}
	if opt.source == sourceAuto && (opt.topology != "" || opt.affine) {
		return source{name: sourceEmulate}, nil
	}
	nodes, hostErr := topo.ReadMachine(h.root)
	if opt.source == sourceAuto && !opt.attached() && (hostErr != nil || len(nodes.Nodes) < 2) {
		fmt.Fprintf(std.err, "numaopt: source: emulation, %s; --source pmu or faults samples here all the same\n", nothingRemote(hostErr))
		return source{name: sourceEmulate}, nil
	}
	machine := pmu.Read(h.root)
	var refused []string
	if opt.source != sourceFaults {
		from, err := hardware(machine, h, opt)
		if option := (*pmu.OptionError)(nil); err == nil || opt.source == sourcePMU || errors.As(err, &option) {
			return from, err
		}
		refused = append(refused, "not pmu: "+err.Error())
	}
	err := faults(machine, h, opt)
	if err == nil {
		if len(refused) > 0 {
			fmt.Fprintf(std.err, "numaopt: source: page faults, %s\n", refused[0])
		}
		return source{sourceFaults, faultRecipe(opt)}, nil
	}
	if opt.source == sourceFaults || opt.attached() {
		return source{}, cannot(err)
	}
	fmt.Fprintf(std.err, "numaopt: source: emulation, %s; nor page faults: %v\n", refused[0], err)
	return source{name: sourceEmulate}, nil
}

// unheeded are the flags given that a source does not heed.
func unheeded(opt profileOptions, source string) (flags []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--ldlat", opt.ldlat != 0 && source != sourcePMU},
		{"-F", opt.frequency != 0 && source != sourcePMU},
		{"--period", opt.period > 1 && source == sourceFaults},
	} {
		if f.given {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// nothingRemote is why samples of this machine would tell nothing of several nodes.
func nothingRemote(err error) string {
	if err != nil {
		return "the nodes of this machine are not known: " + err.Error()
	}
	return "this machine is one node, where nothing is remote"
}

// hardware is the processor's samples, if the kernel lets this user have them.
func hardware(machine *pmu.Machine, h host, opt profileOptions) (source, error) {
	o := pmu.Options{Latency: opt.ldlat, Frequency: opt.frequency}
	if opt.period > 1 {
		o.Period = opt.period
	}
	recipe, err := pmu.Choose(machine, o)
	if errors.Is(err, pmu.ErrNone) {
		err = cannot(err)
	}
	if err != nil {
		return source{}, err
	}
	recipe.SystemWide = recipe.SystemWide || opt.all
	if _, err := record.FindPerf(); err != nil {
		return source{}, cannot(err)
	}
	return source{sourcePMU, recipe}, cannot(machine.Open(recipe, opt.pid, h.open))
}

func faults(machine *pmu.Machine, h host, opt profileOptions) error {
	if _, err := record.FindPerf(); err != nil {
		return err
	}
	return machine.Open(faultRecipe(opt), opt.pid, h.open)
}

func faultRecipe(opt profileOptions) *pmu.Recipe {
	recipe := pmu.Faults()
	recipe.SystemWide = opt.all
	return recipe
}

// runSampled profiles by samples of the kernel's: the program runs at its own
// speed, on this machine.
func runSampled(ctx context.Context, std *stdio, opt profileOptions, from source) error {
	h := opt.host.here()
	// Also of CPUs that numaopt may not use: the program may bind itself elsewhere.
	machine, err := topo.ReadMachine(h.root)
	if err != nil {
		return err
	}
	perf, err := record.FindPerf()
	if err != nil {
		return cannot(err)
	}
	rec := record.PerfOptions{Command: opt.program, PID: opt.pid, Stdin: std.in, Stdout: std.out, Stderr: std.err,
		Select: from.recipe.Select, SystemWide: from.recipe.SystemWide, Duration: opt.duration,
		Limits: record.NewLimits(h.root, len(from.recipe.Events), machine.NumCPUs(), record.Threads(opt.pid))}
	if from.name == sourcePMU {
		rec.Select = append([]string{"-W"}, rec.Select...)
	} else {
		rec.Better = record.BetterFaults
	}
	run := profile.Run{Command: opt.program, Version: version(), Topology: machine, Recording: recordingOf(perf, opt, from.recipe)}
	run.Dir, _ = os.Getwd()
	if opt.attached() {
		run.Command, run.Dir = running(opt.pid)
	}
	fmt.Fprintf(std.err, "numaopt: sampling %s%s with perf %s, on this machine\n", map[string]string{sourcePMU: "loads and stores", sourceFaults: "page faults"}[from.name], whose(opt), perf.Version)
	warnNotes(std, from.recipe.Notes)
	log := ""
	if !opt.attached() {
		ctx = context.WithoutCancel(ctx) // signals are the program's
		dir, err := os.MkdirTemp("", "numaopt-log-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if log, err = filepath.Abs(filepath.Join(dir, "log")); err != nil { // children may be in another directory
			return err
		}
		if rec.Env, run.Bind, err = underRuntime(std, opt, machine, log); err != nil {
			return err
		}
		run.Plan = opt.plan
	}
	r, err := perf.Record(ctx, rec)
	if err != nil {
		return cannot(err)
	}
	defer r.Close()
	warnNotes(std, r.Notes)
	run.Recording.Notes = append(run.Recording.Notes, r.Notes...)
	run.Start, run.ExitStatus = r.Start, r.Status
	return keepSampled(std, opt, run, r, log)
}

func whose(opt profileOptions) string {
	over := ""
	if opt.duration == 0 {
		over = " (Ctrl-C ends it)"
	}
	switch {
	case opt.all:
		return " of the whole machine" + over
	case opt.pid != 0:
		return fmt.Sprintf(" of process %d%s", opt.pid, over)
	}
	return ""
}

// running is the command line and directory of a process; none of process 0.
func running(pid int) (command []string, dir string) {
	if pid == 0 {
		return nil, ""
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if line := strings.TrimRight(string(text), "\x00"); line != "" {
		command = strings.Split(line, "\x00")
	}
	dir, _ = os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return command, dir
}

func recordingOf(perf record.Perf, opt profileOptions, r *pmu.Recipe) *profile.Recording {
	wished := opt.frequency
	if r.Frequency == 0 { // it takes none
		wished = 0
	}
	return &profile.Recording{Recorder: "perf " + perf.Version, Kind: r.Kind, WishedPeriod: r.Period, WishedFrequency: wished,
		PID: opt.pid, SystemWide: r.SystemWide, Notes: append([]string{}, r.Notes...)}
}

func warnNotes(std *stdio, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(std.err, "numaopt: %s\n", note)
	}
}

// keepSampled makes and writes the profile of a recording, and ends as keepProfile; log
// is the name of the runtime's logs, if there are any.
func keepSampled(std *stdio, opt profileOptions, run profile.Run, r *record.Recording, log string) error {
	p, t, stats, err := sampledProfile(opt, run, r, log)
	if opt.attached() && errors.Is(err, sample.ErrNoSamples) { // nothing is lost
		return cannot(errors.New("no profile: there was no sample in that time, because the process ran too little or, by page faults, touched no new page; a longer --duration may have some"))
	}
	if err != nil {
		return lostProfile(std, r.Status, err)
	}
	return keepProfile(std, opt.out, p, r.Status, func(file string) { saySampled(std, file, p, t, stats) })
}

// sampledProfile makes the profile of a recording.
func sampledProfile(opt profileOptions, run profile.Run, r *record.Recording, log string) (*profile.Profile, *sample.Table, *sample.Stats, error) {
	f, err := perfdata.Open(r.File)
	if err != nil {
		return nil, nil, nil, err
	}
	defer f.Close()
	symbols := new(symbol.Table)
	o := sample.Options{Machine: run.Topology, Symbols: symbols, Log: log, Program: r.PID}
	if run.Recording.SystemWide && !opt.all { // the processor follows no process
		o.PID = opt.pid
	}
	t, stats, err := sample.Read(f, o)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := ingest.Sampled(f, t, stats, run, symbols)
	if err != nil {
		return nil, nil, nil, err
	}
	p.Run.Elapsed = r.Elapsed
	if r.Migrated > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("NUMA balancing moved %s pages between nodes while the program ran (of all processes; the kernel's own count)", thousands(r.Migrated)))
	}
	return p, t, stats, nil
}

// saySampled tells what a profile of samples holds.
func saySampled(std *stdio, file string, p *profile.Profile, t *sample.Table, stats *sample.Stats) {
	fmt.Fprintf(std.err, "numaopt: %s: %s samples on %s pages by %s of %s\n", file, thousands(stats.Used), thousands(pages(p)), plural(ranks(p), "thread", "threads"), t.Command)
}

// pages is how many pages a profile has, each once on whatever homes it was.
func pages(p *profile.Profile) uint64 {
	n := uint64(0)
	for i, of := range access.Lives(p) {
		if i == of {
			n++
		}
	}
	return n
}
