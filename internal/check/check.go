// Package check holds profiles against limits on their remote accesses and against
// the baseline of earlier ones, for continuous integration.
//
// # Input
//
// One profile, or several of repeated runs of one program, perhaps restricted to some
// loops, and Limits on the program, on objects and on loops. Measure takes the figures
// of one profile, Judge compares those of all.
//
// # Output
//
// A Result: pass or fail, the figures, a sentence that says so, the lines of source
// behind what failed, and warnings; or an error where the profiles support no verdict.
//
// # Method
//
// The remote percentage is that of access; an object's or a loop's is of its own
// accesses. It fails where the mean over the runs is above the limit, to a hundredth
// of a per cent. Against a baseline it fails where it is above the baseline's mean by
// more than the increase allowed and where that is no chance: Welch's test, one-sided,
// below Options.Alpha. One run takes its spread from the other side. As two or three
// runs that happen to be alike say little, no spread is taken to be smaller than that
// to which full traces repeat, Options.Repeat and RepeatDynamic, and for a sampled
// profile that of the sampling: so one run against one is the plain "about a point" that
// traces of static schedules repeat to, and a trace is not failed for noise. Where both limit and baseline are given both must hold.
//
// Runs of two kinds, as when a page's place is a race, are named: two clusters of runs
// with a gap between them that is wide against either. A mean over both is still what
// is judged, so the verdict then depends on how many runs were of which kind.
//
// # Limits
//
// A profile of one node, and one with too few DRAM accesses, has no verdict; nor has an
// object or a loop with too few.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/stat"
	"numaopt/internal/topo"
)

// Metric names the accesses that a limit is about.
type Metric string

// The metrics.
const (
	DRAM Metric = "dram" // accesses that DRAM served
	All  Metric = "all"  // accesses of all levels
)

// ParseMetric reads a metric.
func ParseMetric(s string) (Metric, error) {
	switch m := Metric(s); m {
	case DRAM, All:
		return m, nil
	}
	return "", fmt.Errorf("metric %q: not dram or all", s)
}

func (m Metric) accesses() string {
	if m == All {
		return "accesses"
	}
	return "DRAM accesses"
}

// Limits are what must hold. Percentages are in [0,100].
type Limits struct {
	Metric      Metric
	MaxRemote   *float64           // of the program; nil is no limit
	Named       map[string]float64 // of objects and loops, by the names given to Measure
	Baseline    *Baseline          // nil is none
	MaxIncrease float64            // in points above the baseline
}

// Options are the thresholds of the statistics.
type Options struct {
	// Repeat is the standard deviation, in points, of the remote percentage between full
	// traces of one program: 0.02 or less with static schedules, 0.4 where threads
	// race for places (analyses/09-repeat). 0.35 makes two runs differ by a point in
	// one case of 20. A part with the share s of all accesses is given Repeat/√s:
	// in one of a fifth of them 1.2 was seen.
	Repeat float64
	// RepeatDynamic is the same for accesses of loops that hand out their work while they
	// run, of which one run in 20 is 2 points from the mean. A part has its share of it.
	RepeatDynamic float64
	// Alpha is how likely chance may be to fail a figure. A gate asks it of ten
	// figures for every change.
	Alpha float64
	// ModeGap is the least distance, in points, between runs of two kinds: what a
	// reader would not put down to noise.
	ModeGap float64
	// MinShare is the least share, in per cent of all DRAM accesses, of an object or a loop
	// that is worth a line in the baseline: below, it moves the program's own
	// figure by no more than that.
	MinShare float64
}

// DefaultOptions are the thresholds that check uses.
func DefaultOptions() Options {
	return Options{Repeat: 0.35, RepeatDynamic: 1.5, Alpha: 0.01, ModeGap: 5, MinShare: 1}
}

// Figure is the remote percentage of the program, an object or a loop.
type Figure struct {
	Kind   Kind    `json:"kind"`
	Name   string  `json:"name"`
	Stable string  `json:"stable_name"` // by which a baseline knows it
	Remote float64 `json:"remote_pct"`  // mean over the runs
	// Low and High are the 95 % interval of Remote; equal to it for one full trace.
	Low      float64   `json:"remote_pct_low"`
	High     float64   `json:"remote_pct_high"`
	Runs     []float64 `json:"runs_pct"` // in the order of the profiles that have enough accesses
	Accesses uint64    `json:"accesses"` // with a known home, mean over the runs
	SharePct float64   `json:"share_pct"`
	// MaxRemote, Baseline and MaxIncrease are what it was held against; nil is nothing.
	MaxRemote   *float64 `json:"max_remote_pct"`
	Baseline    *float64 `json:"baseline_pct"`
	MaxIncrease *float64 `json:"max_increase_points"`
	// NoVerdict says why there is none; empty otherwise, and the figures are of use.
	NoVerdict string   `json:"no_verdict"`
	Failures  []string `json:"failures"` // what did not hold
	Places    []Place  `json:"places"`   // where its remote accesses come from
	said      []string // how it stands to what it was held against
	sampling  float64  // standard deviation of a run that is due to sampling
	dynamic   float64  // share, in [0,1], of accesses in loops that hand out their work
}

// Result is the outcome of one check.
type Result struct {
	Pass    bool   `json:"pass"`
	Verdict string `json:"verdict"`
	Metric  Metric `json:"metric"`
	Figure         // of the program
	// Parts are the objects and loops that were held against something.
	Parts    []*Figure `json:"parts"`
	Profiles []string  `json:"profiles"`
	Only     []string  `json:"only"`
	Command  []string  `json:"command"`
	Topology string    `json:"topology"`
	Warnings []string  `json:"warnings"`
}

// figures is that of the program and those of the parts.
func (r *Result) figures() []*Figure { return append([]*Figure{&r.Figure}, r.Parts...) }

// failed is the figures that do not hold.
func (r *Result) failed() []*Figure {
	return slices.DeleteFunc(r.figures(), func(f *Figure) bool { return len(f.Failures) == 0 })
}

// Judge holds runs, of which there is at least one, against lim. The error is that they
// are not runs of one program or that the baseline is not of it; one that wraps
// access.ErrTooFew says that nothing of what was asked has a verdict.
func Judge(runs []*Measurement, lim Limits, opt Options) (*Result, error) {
	if err := alike(runs); err != nil {
		return nil, err
	}
	first := runs[0]
	j := &judge{runs: runs, lim: lim, opt: opt, r: &Result{
		Metric: lim.Metric, Only: append([]string{}, first.Only...), Command: append([]string{}, first.Command...),
		Topology: first.Topology, Parts: []*Figure{}, Warnings: []string{}, Profiles: []string{},
	}}
	for _, m := range runs {
		j.r.Profiles = append(j.r.Profiles, m.Name)
		for _, w := range m.Warnings {
			if w = ident.Printable(w); !slices.Contains(j.r.Warnings, w) {
				j.r.Warnings = append(j.r.Warnings, w)
			}
		}
	}
	program := j.figure(func(m *Measurement) *part { return m.parts[0] })
	if lim.MaxRemote != nil {
		j.limit(program, *lim.MaxRemote)
	}
	j.named()
	if err := j.baseline(program); err != nil {
		return nil, err
	}
	j.r.Figure = *program
	j.modes()
	return j.r, j.conclude()
}

// alike returns an error unless all are runs of one program in one way.
func alike(runs []*Measurement) error {
	first := runs[0]
	for _, m := range runs[1:] {
		for _, x := range []struct{ what, a, b string }{
			{"commands", strings.Join(program(first.Command), " "), strings.Join(program(m.Command), " ")},
			{"topologies", first.Topology, m.Topology},
			{"plans", first.run.Run.Plan, m.run.Run.Plan},
		} {
			if x.a != x.b {
				return fmt.Errorf("%s and %s are not runs of one program: their %s are %q and %q", first.Name, m.Name, x.what, x.a, x.b)
			}
		}
	}
	return nil
}

// program is a command without the folder of its program, which differs from one
// machine to the next.
func program(command []string) []string {
	if len(command) == 0 {
		return []string{}
	}
	return append([]string{filepath.Base(command[0])}, command[1:]...)
}

// judge is a check under way.
type judge struct {
	runs []*Measurement
	lim  Limits
	opt  Options
	r    *Result
}

func (j *judge) warn(format string, args ...any) {
	j.r.Warnings = append(j.r.Warnings, ident.Printable(fmt.Sprintf(format, args...)))
}

// figure sums up a part over the runs that have enough accesses of it.
func (j *judge) figure(of func(*Measurement) *part) *Figure {
	f := &Figure{Runs: []float64{}, Failures: []string{}, Places: []Place{}}
	var most access.Flow
	var places *part
	var sampled float64
	for _, m := range j.runs {
		x := of(m)
		if x == nil {
			continue
		}
		f.Kind, f.Name, f.Stable = x.kind, ident.Printable(x.name), x.stable
		flow := x.flow(j.lim.Metric)
		if flow.Known() > most.Known() {
			most = flow
		}
		if !m.enough(flow) {
			continue
		}
		lo, hi := access.RemoteInterval(m.run, flow)
		f.Low, f.High, sampled = lo, hi, max(sampled, hi-lo)
		f.Runs = append(f.Runs, flow.RemotePct())
		f.Accesses += flow.Known()
		f.SharePct += access.Pct(flow.Known(), m.parts[0].flow(j.lim.Metric).Known())
		f.dynamic += x.dynamicShare()
		if places == nil || flow.Remote > places.flow(j.lim.Metric).Remote {
			places = x
		}
	}
	n := len(f.Runs)
	if n == 0 {
		f.NoVerdict = fmt.Sprintf("too few %s: %d with a known home, a statement wants %d samples", j.lim.Metric.accesses(), most.Known(), access.MinSamples)
		return f
	}
	f.Accesses /= uint64(n)
	f.SharePct /= float64(n)
	f.dynamic /= float64(n)
	f.Places = append(f.Places, places.places...)
	f.sampling = sampled / (2 * 1.96)
	s := stat.Describe(f.Runs)
	if f.Remote = s.Mean; n > 1 {
		f.Low, f.High = s.Interval(j.floor(f))
		f.Low, f.High = max(0, f.Low), min(100, f.High)
	}
	return f
}

// enough reports whether flow supports a statement.
func (m *Measurement) enough(flow access.Flow) bool {
	return access.Samples(m.run, flow.Known()) >= access.MinSamples
}

// floor is the standard deviation of a run of f that is there whatever was seen.
func (j *judge) floor(f *Figure) float64 {
	repeat := math.Hypot(j.opt.Repeat/math.Sqrt(f.SharePct/100), j.opt.RepeatDynamic*f.dynamic)
	return math.Hypot(repeat, f.sampling)
}

// limit holds f against a limit of its own.
func (j *judge) limit(f *Figure, limit float64) {
	if f.MaxRemote = &limit; f.NoVerdict == "" {
		j.unsure(f, limit, "limit "+percent(limit))
		f.hold(limit, "limit "+percent(limit))
	}
}

// unsure warns of a limit, called name, that lies inside the interval of f.
func (j *judge) unsure(f *Figure, limit float64, name string) {
	if !(f.Low < limit && limit < f.High) {
		return
	}
	cure := "profile more runs to be sure"
	if f.sampling > 0 && len(f.Runs) == 1 {
		cure = "sample with a smaller --period to be sure"
	}
	j.warn("the %s lies inside the 95 %% interval %s to %s%s: %s", name, percent(f.Low), percent(f.High), f.of(), cure)
}

// named holds the objects and loops that have a limit of their own.
func (j *judge) named() {
	for _, name := range sortedKeys(j.lim.Named) {
		f := j.figure(func(m *Measurement) *part { return m.named[name] })
		j.limit(f, j.lim.Named[name])
		j.r.Parts = append(j.r.Parts, f)
	}
}

func sortedKeys(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// hold notes whether f keeps to limit, called name.
func (f *Figure) hold(limit float64, name string) {
	said := "within the " + name
	if hundredths(f.Remote) > hundredths(limit) {
		said = "above the " + name
		f.Failures = append(f.Failures, said)
	}
	f.said = append(f.said, said)
}

// of is " of u", nothing for the program.
func (f *Figure) of() string {
	if f.Kind == Program {
		return ""
	}
	return " of " + f.Name
}

// hundredths rounds a percentage as it is printed and as baselines keep it, so
// that the verdict never contradicts the figures beside it.
func hundredths(pct float64) float64 { return math.Round(pct * 100) }

func percent(pct float64) string { return fmt.Sprintf("%.2f %%", pct) }

// baseline holds the program and its parts against the baseline.
func (j *judge) baseline(program *Figure) error {
	b := j.lim.Baseline
	if b == nil {
		return nil
	}
	if err := j.comparable(b); err != nil {
		return err
	}
	base, err := b.program(j.lim.Metric)
	if err != nil {
		return err
	}
	j.against(program, base)
	known := make(map[string]bool)
	for _, x := range b.parts(j.lim.Metric) {
		known[string(x.kind)+x.name] = true
		if f := j.find(x.kind, x.name); f.Name == "" {
			j.warn("the baseline's %s %q is not in the profile: it is gone or has another name", x.kind, x.name)
		} else {
			j.against(f, x)
		}
	}
	if len(known) > 0 {
		j.unknownTo(known)
	}
	return nil
}

// comparable refuses a baseline of something else, and warns of one in another way.
func (j *judge) comparable(b *Baseline) error {
	then, now := program(b.Command), program(j.r.Command)
	for _, x := range []struct{ what, then, now string }{
		{"program", strings.Join(then[:min(1, len(then))], ""), strings.Join(now[:min(1, len(now))], "")},
		{"topology", b.Topology, j.r.Topology},
	} {
		if x.then != x.now {
			return fmt.Errorf("the baseline is of another %s: %q, the profile's is %q; --write-baseline makes one of this", x.what, x.then, x.now)
		}
	}
	for _, x := range []struct{ what, then, now string }{
		{"command", strings.Join(then, " "), strings.Join(now, " ")},
		{"set of loops", strings.Join(b.Only, ", "), strings.Join(j.r.Only, ", ")},
	} {
		if x.then != x.now {
			j.warn("the baseline is of another %s: %q, now %q", x.what, x.then, x.now)
		}
	}
	return nil
}

// find is the figure of a part: one that has a limit of its own, or a new one, whose
// name is empty where no run has the part.
func (j *judge) find(kind Kind, stable string) *Figure {
	for _, f := range j.r.Parts {
		if f.Kind == kind && f.Stable == stable {
			return f
		}
	}
	f := j.figure(func(m *Measurement) *part { return m.part(kind, stable) })
	if f.Name != "" {
		j.r.Parts = append(j.r.Parts, f)
	}
	return f
}

func (m *Measurement) part(kind Kind, stable string) *part {
	i := slices.IndexFunc(m.parts, func(x *part) bool { return x.kind == kind && x.stable == stable })
	if i < 0 {
		return nil
	}
	return m.parts[i]
}

// against holds f against the baseline's figure of it.
func (j *judge) against(f *Figure, base figure) {
	then := stat.Describe(base.values)
	limit := then.Mean + j.lim.MaxIncrease
	f.Baseline, f.MaxIncrease = &then.Mean, &j.lim.MaxIncrease
	if f.NoVerdict != "" {
		return
	}
	if f.Kind == Program && stat.Modes(base.values, j.opt.ModeGap) != nil {
		j.warn("the baseline's runs are bimodal, %.2f to %s: next to them hardly any change is significant", slices.Min(base.values), percent(slices.Max(base.values)))
	}
	name := "baseline " + percent(then.Mean)
	if j.lim.MaxIncrease > 0 {
		name += fmt.Sprintf(" + %.4g points", j.lim.MaxIncrease)
	}
	floor := j.floor(f)
	p := stat.Greater(stat.Describe(f.Runs), then, floor, math.Hypot(floor, base.sampling))
	if hundredths(f.Remote) > hundredths(limit) && p >= j.opt.Alpha {
		f.said = append(f.said, "not significantly above the "+name)
		j.warn("%.2f points above the baseline%s, but the runs differ so much that this may be chance (p = %.2g): profile more runs", f.Remote-then.Mean, f.of(), p)
		return
	}
	if f.Kind == Program && f.sampling > 0 {
		j.unsure(f, limit, name)
	}
	f.hold(limit, name)
}

// unknownTo warns of objects and loops that matter and that the baseline does not know.
func (j *judge) unknownTo(known map[string]bool) {
	for _, x := range j.runs[0].parts[1:] {
		if !known[string(x.kind)+x.stable] && j.runs[0].matters(x, j.opt) {
			j.warn("the %s %s is not in the baseline: %s of its DRAM accesses are remote; --write-baseline takes it in", x.kind, x.name, percent(x.traffic.DRAM.RemotePct()))
		}
	}
}

// matters reports whether x is worth a line in the baseline.
func (m *Measurement) matters(x *part, opt Options) bool {
	return m.enough(x.traffic.DRAM) && access.Pct(x.traffic.DRAM.Known(), m.parts[0].traffic.DRAM.Known()) >= opt.MinShare
}

// modes warns where the runs are of two kinds. Parts are looked at where the program
// as a whole is not.
func (j *judge) modes() {
	if j.bimodal(&j.r.Figure) {
		return
	}
	for _, f := range j.r.Parts {
		j.bimodal(f)
	}
}

func (j *judge) bimodal(f *Figure) bool {
	n := len(f.Runs)
	if n < 2 || n != len(j.runs) {
		return false
	}
	least, most := slices.Min(f.Runs), slices.Max(f.Runs)
	high := stat.Modes(f.Runs, j.opt.ModeGap)
	switch {
	case high != nil:
		j.warn("the runs%s are bimodal: %s; %s. Something differs between them, and the verdict is by how many of each there are", f.of(), j.mode(f, high, false), j.mode(f, high, true))
	case n < 4 && most-least >= j.opt.ModeGap:
		j.warn("the runs%s differ by %.2f points, from %s to %s: more of them would tell whether there are two kinds", f.of(), most-least, percent(least), percent(most))
	default:
		return false
	}
	return true
}

// mode names the runs of one cluster and gives their mean.
func (j *judge) mode(f *Figure, high []bool, which bool) string {
	var names []string
	var values []float64
	for i, m := range j.runs {
		if high[i] == which {
			names = append(names, m.Name)
			values = append(values, f.Runs[i])
		}
	}
	return fmt.Sprintf("%s in the mean of %d (%s)", percent(stat.Describe(values).Mean), len(names), strings.Join(names, ", "))
}

// conclude makes the verdict. The error is that nothing that was asked has one.
func (j *judge) conclude() error {
	r := j.r
	asked := len(r.said) > 0 || len(r.Parts) == 0
	for _, f := range r.Parts {
		if asked = asked || f.NoVerdict == ""; f.NoVerdict != "" {
			j.warn("no verdict on the %s %s: %s", f.Kind, f.Name, f.NoVerdict)
		}
	}
	if !asked {
		return fmt.Errorf("%w accesses of what has a limit: %s", access.ErrTooFew, r.Parts[0].NoVerdict)
	}
	failed := r.failed()
	r.Pass = len(failed) == 0
	// Those that fail come first, objects before loops.
	slices.SortStableFunc(r.Parts, func(a, b *Figure) int {
		return cmp.Or(cmp.Compare(min(1, len(b.Failures)), min(1, len(a.Failures))), -cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.SharePct, a.SharePct))
	})
	r.Verdict = ident.Printable(r.sentence())
	return nil
}

func (r *Result) sentence() string {
	word, said := "ok", r.said
	if !r.Pass {
		word = "FAIL"
	}
	if len(r.Failures) > 0 {
		said = r.Failures
	}
	s := fmt.Sprintf("%s: %s of %s are remote", word, percent(r.Remote), r.Metric.accesses())
	if len(r.Only) > 0 {
		s += " in " + strings.Join(r.Only, ", ")
	}
	if n := len(r.Runs); n > 1 {
		s += fmt.Sprintf(" (%d runs, %.2f to %s)", n, slices.Min(r.Runs), percent(slices.Max(r.Runs)))
	}
	if len(said) > 0 {
		s += ", " + strings.Join(said, " and ")
	}
	var parts []string
	for _, f := range r.Parts {
		if len(f.Failures) > 0 {
			parts = append(parts, f.Name)
		}
	}
	if len(parts) > 0 {
		s += "; too many in " + strings.Join(parts, ", ")
	}
	return s
}

// NoVerdict reports whether err says that a profile supports no verdict, as
// opposed to bad input.
func NoVerdict(err error) bool {
	return errors.Is(err, topo.ErrOneNode) || errors.Is(err, access.ErrTooFew) || errors.Is(err, access.ErrFirstTouches)
}
