// Package check holds a profile against a limit on its remote accesses and
// against the baseline of an earlier one, for continuous integration.
//
// # Input
//
// A profile, perhaps restricted to some loops, and Limits.
//
// # Output
//
// A Result: pass or fail, the figures, one line that says so, and warnings; or
// an error where the profile supports no verdict.
//
// # Method
//
// The remote percentage is that of access. It fails where it is above the limit,
// or above the baseline's by more than the increase allowed, to a hundredth of a
// per cent; where both are given both must hold. A full trace of a program with static schedules repeats
// to about a point. For a sampled profile the interval is given; the verdict is
// by the middle, with a warning where a limit lies inside the interval.
//
// # Limits
//
// A profile of one node, and one with too few DRAM accesses, has no verdict.
package check

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/profile"
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

// Limits are what must hold. Percentages are in [0,100].
type Limits struct {
	Metric      Metric
	MaxRemote   *float64  // nil is no limit
	Baseline    *Baseline // nil is none
	MaxIncrease float64   // in points above the baseline
}

// Result is the outcome of one check.
type Result struct {
	Pass    bool    `json:"pass"`
	Verdict string  `json:"verdict"`
	Metric  Metric  `json:"metric"`
	Remote  float64 `json:"remote_pct"`
	// Low and High are the 95 % interval of Remote; equal to it for a full trace.
	Low         float64  `json:"remote_pct_low"`
	High        float64  `json:"remote_pct_high"`
	Accesses    uint64   `json:"accesses"` // with a known home
	MaxRemote   *float64 `json:"max_remote_pct"`
	Baseline    *float64 `json:"baseline_pct"`
	MaxIncrease *float64 `json:"max_increase_points"`
	Only        []string `json:"only"`
	Command     []string `json:"command"`
	Topology    string   `json:"topology"`
	Warnings    []string `json:"warnings"`
	Failures    []string `json:"failures"` // what did not hold; empty if Pass
}

// Run checks p, restricted to the loops and functions only, against lim. Errors
// that wrap topo.ErrOneNode, access.ErrTooFew or access.ErrFirstTouches say that p supports no verdict.
func Run(p *profile.Profile, only []string, lim Limits) (*Result, error) {
	flow, err := measure(p, only, lim.Metric)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Metric: lim.Metric, Remote: flow.RemotePct(), Accesses: flow.Known(), MaxRemote: lim.MaxRemote,
		Only: append([]string{}, only...), Command: append([]string{}, p.Run.Command...),
		Topology: p.Run.Topology.String(), Warnings: append([]string{}, p.Warnings...), Failures: []string{},
	}
	r.Low, r.High = access.RemoteInterval(p, flow)
	if !p.Run.Complete {
		r.warn("the recording is not complete: the figures are of the run up to there")
	}
	if unknown := access.Pct(flow.Unknown, flow.Total()); unknown >= 1 {
		r.warn("%s of the accesses are to pages whose home is not known; they are left out", percent(unknown))
	}
	var said []string
	if lim.MaxRemote != nil {
		said = append(said, r.hold(*lim.MaxRemote, fmt.Sprintf("limit %s", percent(*lim.MaxRemote))))
	}
	if b := lim.Baseline; b != nil {
		base, err := r.against(b, lim.MaxIncrease)
		if err != nil {
			return nil, err
		}
		said = append(said, base)
	}
	r.Pass = len(r.Failures) == 0
	r.Verdict = r.sentence(said)
	return r, nil
}

// measure returns the accesses that the metric is about.
func measure(p *profile.Profile, only []string, m Metric) (access.Flow, error) {
	if n := len(p.Run.Topology.Nodes); n < 2 {
		return access.Flow{}, fmt.Errorf("the profile is of %w", topo.ErrOneNode)
	}
	q, err := access.Only(p, only)
	if err != nil {
		return access.Flow{}, err
	}
	if err := access.Support(q); err != nil {
		return access.Flow{}, err
	}
	t := access.Total(q)
	if m == All {
		return t.All, nil
	}
	return t.DRAM, nil
}

func (r *Result) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// hold notes whether the remote percentage keeps to limit, called name, and
// returns how it stands to it.
func (r *Result) hold(limit float64, name string) string {
	if r.Low < limit && limit < r.High && r.Low != r.High {
		r.warn("the %s lies inside the 95 %% interval %s to %s: sample with a smaller --period to be sure",
			name, percent(r.Low), percent(r.High))
	}
	if hundredths(r.Remote) > hundredths(limit) {
		said := "above the " + name
		r.Failures = append(r.Failures, said)
		return said
	}
	return "within the " + name
}

// hundredths rounds a percentage as it is printed and as baselines keep it, so
// that the verdict never contradicts the figures beside it.
func hundredths(pct float64) float64 { return math.Round(pct * 100) }

func percent(pct float64) string { return fmt.Sprintf("%.2f %%", pct) }

// against holds r against a baseline.
func (r *Result) against(b *Baseline, increase float64) (string, error) {
	base, err := b.remote(r.Metric)
	if err != nil {
		return "", err
	}
	r.Baseline, r.MaxIncrease = &base, &increase
	for _, x := range []struct{ what, then, now string }{
		{"command", strings.Join(b.Command, " "), strings.Join(r.Command, " ")},
		{"topology", b.Topology, r.Topology},
		{"set of loops", strings.Join(b.Only, ", "), strings.Join(r.Only, ", ")},
	} {
		if x.then != x.now {
			r.warn("the baseline is of another %s: %q, now %q", x.what, x.then, x.now)
		}
	}
	name := fmt.Sprintf("baseline %s", percent(base))
	if increase > 0 {
		name += fmt.Sprintf(" + %.4g points", increase)
	}
	return r.hold(base+increase, name), nil
}

func (r *Result) sentence(said []string) string {
	word := "ok"
	if !r.Pass {
		word, said = "FAIL", r.Failures
	}
	what := "DRAM accesses"
	if r.Metric == All {
		what = "accesses"
	}
	s := fmt.Sprintf("%s: %s of %s are remote", word, percent(r.Remote), what)
	if len(r.Only) > 0 {
		s += " in " + strings.Join(r.Only, ", ")
	}
	if len(said) > 0 {
		s += ", " + strings.Join(said, " and ")
	}
	return s
}

// NoVerdict reports whether err says that a profile supports no verdict, as
// opposed to bad input.
func NoVerdict(err error) bool {
	return errors.Is(err, topo.ErrOneNode) || errors.Is(err, access.ErrTooFew) || errors.Is(err, access.ErrFirstTouches)
}
