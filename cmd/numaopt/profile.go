package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"numaopt/internal/ingest"
	"numaopt/internal/launch"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/record"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// profileOptions are the flags of numaopt profile.
type profileOptions struct {
	out       string
	source    string
	topology  string // empty is this machine's
	bind      string
	plan      string
	affine    bool
	period    uint64
	ldlat     int
	frequency uint64
	l1        string
	l2        string
	llc       string
	pid       int
	all       bool          // the whole machine
	duration  time.Duration // of -p and -a; 0 is until the process or Ctrl-C ends it
	program   []string

	host host // the zero value is this machine
}

// attached is a profile of what runs already.
func (opt *profileOptions) attached() bool { return opt.pid != 0 || opt.all }

func newProfileCmd(std *stdio, run func(context.Context, profileOptions) error) *cobra.Command {
	var opt profileOptions
	m := topo.DefaultCaches()
	cmd := &cobra.Command{
		Use:   "profile -o FILE [flags] {-p PID | -a | -- PROGRAM [ARGS]}",
		Short: "run a program and record where every page is touched from",
		Long: `profile runs an unmodified, dynamically linked program and records which thread
touches which page, from which loop, and what serves the access: a cache or the
memory of a node. The program's output, input and exit status are its own.

On a machine whose processor cannot be sampled it runs in an emulator
(qemu-x86_64), which sees every load and store, on the machine that --topology
names. Caches and first touch are modelled: private L1 and L2, one LLC per node,
LRU; a page's home is the node of the thread that first writes it, or the
plan's.

With -p or -a what runs already is profiled, by samples, until it or the time is
over, or Ctrl-C. Without numaopt's runtime in it, objects of the heap are known as
mappings only, and loops by their functions.

Which thread runs which iteration of a dynamic or guided loop is chance, and no two
runs agree. With --affine the iterations are cut into one part for each node, and its
threads do that part: what plan --affine needs to know. Such a profile is not of the
program as it runs without a plan.`,
		Example: `  numaopt profile -o app.nprof -- ./app 1000
  numaopt profile -o app.nprof --topology 2x4 --llc 2M:16 -- ./app
  numaopt profile -o after.nprof --plan app.plan.yaml -- ./app 1000
  numaopt profile -o app.nprof -p 4711 --duration 10s      # of what runs already`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.attached() {
				if len(args) > 0 {
					return usagef("%q: -p and -a profile what runs already, without a program", args[0])
				}
				return run(cmd.Context(), opt)
			}
			_, program, err := splitProgram(cmd, args, 0)
			if err != nil {
				return err
			}
			opt.program = program
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opt.out, "output", "o", "", "write the profile to `FILE`")
	f.StringVar(&opt.source, "source", sourceAuto, "where accesses are seen: pmu, faults, emulate, or auto, the first of these that this machine has")
	f.IntVar(&opt.ldlat, "ldlat", 0, "pmu: sample loads that take this many `CYCLES` or more (default: 3 on Intel, all elsewhere)")
	f.Uint64VarP(&opt.frequency, "frequency", "F", 0, "pmu: `N` samples a second and CPU, instead of one in --period")
	f.IntVarP(&opt.pid, "pid", "p", 0, "pmu, faults: profile the running process of this `ID`")
	f.BoolVarP(&opt.all, "all-cpus", "a", false, "pmu, faults: record the whole machine; the profile is of the process with the most samples")
	f.DurationVar(&opt.duration, "duration", 0, "with -p and -a: for this `TIME`, such as 10s (default: until the process ends, or Ctrl-C)")
	f.StringVar(&opt.topology, "topology", "", "the machine that the program sees, `NODESxCPUS`, CPUs per node (default: this one; 4x2 where it has one node)")
	f.StringVar(&opt.bind, "bind", "", "ranks on CPUs: compact (node by node), spread (round robin over nodes) or, where it is sampled, none (as the kernel has them); default: as --plan says, else compact")
	f.StringVar(&opt.plan, "plan", "", "run with the plan in `FILE` in force")
	f.BoolVar(&opt.affine, "affine", false, "run OpenMP loops of dynamic and guided schedules as plan --affine would: the threads of each node take their part of the iterations")
	f.Uint64VarP(&opt.period, "period", "c", 1, "emulate: count one access in `N`, at random; pmu: one in N (Arm: operations, AMD: micro-operations); 1 is all, or the processor's default")
	f.StringVar(&opt.l1, "l1", cacheText(m.L1), "L1 of each CPU, `BYTES:WAYS`")
	f.StringVar(&opt.l2, "l2", cacheText(m.L2), "L2 of each CPU, `BYTES:WAYS`")
	f.StringVar(&opt.llc, "llc", cacheText(m.LLC), "LLC of each node, `BYTES:WAYS`")
	return cmd
}

func cacheText(c topo.Cache) string {
	if c.Bytes%1024 == 0 {
		return fmt.Sprintf("%dK:%d", c.Bytes/1024, c.Ways)
	}
	return fmt.Sprintf("%d:%d", c.Bytes, c.Ways)
}

// cacheModel reads the three cache flags.
func cacheModel(l1, l2, llc string) (topo.CacheModel, error) {
	m := topo.DefaultCaches()
	for _, level := range []struct {
		flag, text string
		to         *topo.Cache
	}{{"--l1", l1, &m.L1}, {"--l2", l2, &m.L2}, {"--llc", llc, &m.LLC}} {
		c, err := record.ParseCache(level.text)
		if err != nil {
			return m, usagef("%s: %w", level.flag, err)
		}
		*level.to = c
	}
	return m, nil
}

// bindNone leaves threads where the kernel has them.
const bindNone = "none"

// checkProfileOptions refuses what can be refused without looking at the machine.
func checkProfileOptions(opt profileOptions) error {
	switch {
	case opt.out == "":
		return usagef("no file for the profile: -o FILE")
	case !slices.Contains([]string{sourceAuto, sourcePMU, sourceFaults, sourceEmulate}, opt.source):
		return usagef("--source %q: want auto, pmu, faults or emulate", opt.source)
	case (opt.source == sourcePMU || opt.source == sourceFaults) && opt.topology != "":
		return usagef("--source %s samples the program on this machine; --topology names one to emulate", opt.source)
	case (opt.source == sourcePMU || opt.source == sourceFaults) && opt.affine:
		return usagef("--affine: what dynamic loops do under a plan is emulated (--source emulate)")
	case opt.pid < 0:
		return usagef("-p %d: not the ID of a process", opt.pid)
	case opt.pid != 0 && opt.all:
		return usagef("-p and -a: one process, or the whole machine?")
	case opt.attached() && (opt.source == sourceEmulate || opt.topology != "" || opt.plan != "" || opt.affine):
		return usagef("-p and -a sample what runs already: nothing of it can be emulated or run with a plan")
	case opt.duration < 0 || opt.duration != 0 && !opt.attached():
		return usagef("--duration goes with -p or -a, and is a time to come")
	case opt.period == 0 || opt.period >= 1<<32:
		return usagef("--period %d: want 1 to %d", opt.period, uint64(1)<<32-1)
	case opt.period > 1 && opt.frequency != 0:
		return usagef("--period and -F: one of them")
	case opt.ldlat < 0:
		return usagef("--ldlat %d: a number of cycles", opt.ldlat)
	case opt.source != sourceAuto && len(unheeded(opt, opt.source)) > 0:
		return usagef("--source %s does not heed %s", opt.source, strings.Join(unheeded(opt, opt.source), ", "))
	case opt.bind == bindNone && opt.source == sourceEmulate:
		return usagef("--bind none: the emulator has to know where threads run; compact or spread")
	case !slices.Contains([]string{"", string(topo.BindCompact), string(topo.BindSpread), bindNone}, opt.bind):
		return usagef("--bind %q: want compact, spread or none", opt.bind)
	}
	return nil
}

// namedOrHost is the machine that --topology names; without it this machine,
// or 4x2 where that has one node.
func namedOrHost(name string) (t topo.Topology, why string, err error) {
	if name != "" {
		t, err = topo.Parse(name)
		if err != nil {
			err = &usageError{err}
		}
		return t, "", err
	}
	if t, err = topo.Host(); err == nil && len(t.Nodes) > 1 {
		return t, "", nil
	}
	t, err = topo.Parse("4x2")
	return t, "this machine has one NUMA node: the program sees 4 nodes of 2 CPUs (--topology names another machine)", err
}

func runProfile(ctx context.Context, std *stdio, opt profileOptions) error {
	if err := checkProfileOptions(opt); err != nil {
		return err
	}
	model, err := cacheModel(opt.l1, opt.l2, opt.llc)
	if err != nil {
		return err
	}
	if opt.pid != 0 && errors.Is(syscall.Kill(opt.pid, 0), syscall.ESRCH) {
		return usagef("-p %d: there is no such process", opt.pid)
	}
	var bare error // why the program cannot have the runtime
	if !opt.attached() {
		var path string
		if path, bare = record.Resolve(opt.program[0]); path == "" {
			return bare
		}
	}
	machine, why, err := namedOrHost(opt.topology)
	if err != nil {
		return err
	}
	if err := writableFile(opt.out); err != nil {
		return err
	}
	from, err := choose(std, opt)
	if err != nil {
		return err
	}
	if flags := unheeded(opt, from.name); len(flags) > 0 {
		fmt.Fprintf(std.err, "numaopt: not heeded by this source: %s\n", strings.Join(flags, ", "))
	}
	if from.name != sourceEmulate {
		return runSampled(ctx, std, opt, from)
	}
	if bare != nil {
		return bare
	}
	if opt.bind == bindNone {
		return usagef("--bind none: this run is emulated, and the emulator has to know where threads run; compact or spread")
	}
	qemu, err := record.FindEmulator()
	if err != nil {
		return cannot(err)
	}
	rec := record.Options{
		Command: opt.program, Topology: machine, Bind: topo.Bind(opt.bind), Cache: model, Period: opt.period,
		Stdin: std.in, Stdout: std.out, Stderr: std.err,
	}
	if opt.plan != "" {
		if rec.Run, rec.Bind, err = planRun(std, opt, machine, runfile.Emulated); err != nil {
			return err
		}
	}
	rec.Run.Affine = opt.affine
	if opt.bind = string(rec.Bind); opt.bind == "" {
		opt.bind, rec.Bind = string(topo.BindCompact), topo.BindCompact
	}
	if opt.source == sourceAuto {
		fmt.Fprintf(std.err, "numaopt: emulating (qemu-x86_64 %s): every access is counted\n", qemu.Version)
	}
	if why != "" {
		fmt.Fprintf(std.err, "numaopt: %s\n", why)
	}
	progress := newProgress(std.err, "emulating")
	if progress != nil {
		rec.Progress = func(n uint64, d time.Duration) {
			progress.describe(fmt.Sprintf("emulating: %.0f million accesses, %.0f million/s", float64(n)/1e6, float64(n)/1e6/d.Seconds()))
		}
	}
	// Signals are the program's: it ends, and what it did until then is kept.
	raw, err := record.Emulate(context.WithoutCancel(ctx), qemu, rec)
	progress.end()
	if err != nil {
		return err
	}
	defer raw.Close()
	return writeProfile(std, opt, rec, raw)
}

// writeProfile makes and writes the profile, and ends as keepProfile.
func writeProfile(std *stdio, opt profileOptions, rec record.Options, raw *record.Raw) error {
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	p, err := ingest.Emulated(raw, profile.Run{
		Command: opt.program, Dir: dir, Host: host, Version: version(), HugePages: topo.HugePages(os.DirFS("/")), Topology: rec.Topology, Bind: opt.bind,
		Cache: rec.Cache, Period: opt.period, Plan: opt.plan,
	})
	if err != nil {
		return lostProfile(std, raw.Status, err)
	}
	if opt.affine {
		p.Warnings = append(p.Warnings, "loops of dynamic and guided schedules ran affine (--affine), as the program does only under a plan that says so: this profile is for plan --affine")
	} else if slices.ContainsFunc(rec.Run.Loops, func(l runfile.Loop) bool { return l.Schedule == runfile.Affine }) {
		p.Warnings = append(p.Warnings, "loops that the plan has made affine ran without stealing: who helps whom is up to how busy this machine's CPUs are; what the plan predicts to be stolen comes on top, and numaopt lab counts it")
	}
	return keepProfile(std, opt.out, p, raw.Status, func(file string) {
		if len(raw.Set) > 0 {
			fmt.Fprintf(std.err, "numaopt: set for the program, as it had not: %s\n", strings.Join(raw.Set, " "))
		}
		var accesses uint64
		for i := range p.Rows {
			accesses += p.Rows[i].Count
		}
		fmt.Fprintf(std.err, "numaopt: %s: %s accesses to %d pages by %s in %.1f s\n", file, thousands(accesses), len(p.Pages), plural(ranks(p), "thread", "threads"), raw.Elapsed.Seconds())
	})
}

// lostProfile says why there is no profile of a program that ended with status, and ends
// with that, but not with 0.
func lostProfile(std *stdio, status int, why error) error {
	fmt.Fprintf(std.err, "numaopt: the profile is lost: %v\n", why)
	return &exitError{code: max(status, 1)}
}

// keepProfile writes the profile of a program that ended with status, says what is in
// it and what comes next, and ends with that status. Where it cannot be written to path,
// it is kept in another file, and the status is not 0.
func keepProfile(std *stdio, path string, p *profile.Profile, status int, say func(file string)) error {
	file, err := writeAnywhere(path, p)
	if file == "" {
		return lostProfile(std, status, err)
	}
	if err != nil {
		fmt.Fprintf(std.err, "numaopt: %v; the profile is in %s\n", err, file)
		status = max(status, 1)
	}
	sayProfile(std, file, p, func() { say(file) })
	if status != 0 {
		return &exitError{code: status}
	}
	return nil
}

// sayProfile tells what to know of a profile, what is in it, and what comes next.
func sayProfile(std *stdio, file string, p *profile.Profile, say func()) {
	for _, w := range p.Warnings {
		fmt.Fprintf(std.err, "numaopt: warning: %s\n", w)
	}
	say()
	fmt.Fprintf(std.err, "numaopt: next: numaopt report %s\n", file)
}

// writeAnywhere writes the profile to path or, where that fails after all (a full
// disk, a directory that is gone), to a file in the directory for temporary
// files or in the current one. It returns where, and what failed.
func writeAnywhere(path string, p *profile.Profile) (string, error) {
	first := profile.WriteFile(path, p)
	if first == nil {
		return path, nil
	}
	for _, dir := range []string{os.TempDir(), "."} {
		f, err := os.CreateTemp(dir, "numaopt-*.nprof")
		if err != nil {
			continue
		}
		f.Close()
		if profile.WriteFile(f.Name(), p) == nil {
			return f.Name(), first
		}
		os.Remove(f.Name())
	}
	return "", first
}

func ranks(p *profile.Profile) int {
	seen := map[int]bool{}
	for _, t := range p.Threads {
		seen[t.Rank] = true
	}
	return len(seen)
}

// thousands prints a number as 12,345,678.
func thousands(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// writableFile reports now, before the program has run for an hour, that the
// profile cannot be written there.
func writableFile(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return usagef("-o %s: is a directory", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	} else if err == nil {
		defer os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("the profile cannot be written: %w", err)
	}
	return f.Close()
}

// planRun resolves a plan for the machine that the program sees, and how threads
// are bound there: as --bind says, else as the plan does.
func planRun(std *stdio, opt profileOptions, machine topo.Topology, system runfile.System) (runfile.Run, topo.Bind, error) {
	p, err := plan.ReadFile(opt.plan)
	if err != nil {
		return runfile.Run{}, "", err
	}
	bind := opt.bind
	if bind == "" && p.Threads.Bind != "none" {
		bind = p.Threads.Bind
	}
	res, err := launch.Resolve(p, new(symbol.Table), launch.Options{
		Command: opt.program, Environ: os.Environ(), Topology: machine, System: system, Mode: runfile.Track, Bind: bind,
		Permutable: permutable(),
	})
	if err != nil {
		return runfile.Run{}, "", err
	}
	warnAll(std, res.Warnings)
	return res.Run, topo.Bind(bind), nil
}
