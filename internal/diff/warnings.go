package diff

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// warnings are what must be known before believing a figure, the widest first: what is
// different about the runs, then what they do not support.
func (d *differ) warnings(r *Result) []string {
	list := []string{}
	a, b := &d.before.p.Run, &d.after.p.Run
	differs := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s; before %s", what, orNone(is), orNone(was)))
		}
	}
	differs("another topology", a.Topology.String(), b.Topology.String())
	differs("other threads", fmt.Sprint(d.before.threads), fmt.Sprint(d.after.threads))
	differs("threads bound otherwise", bound(a), bound(b))
	differs("other arguments", arguments(a), arguments(b))
	differs("another plan", a.Plan, b.Plan)
	differs("another source of samples", a.Source, b.Source)
	if a.Source == "emulate" && b.Source == "emulate" && a.Cache != b.Cache {
		list = append(list, fmt.Sprintf("another cache model: LLC %v; before %v", units.Bytes(b.Cache.LLC.Bytes), units.Bytes(a.Cache.LLC.Bytes)))
	}
	for _, x := range []struct {
		name string
		s    *side
	}{{"before", d.before}, {"after", d.after}} {
		for _, w := range trust(x.s.p) {
			list = append(list, "the profile "+x.name+": "+w)
		}
	}
	if d.repeat > d.opt.Repeat {
		list = append(list, fmt.Sprintf("threads that did the same work missed the cache another number of times, %.1f %% of the DRAM accesses: changes of fewer points may be chance; a problem whose data is larger than the LLC repeats better", d.repeat))
	}
	return append(list, d.matching(r)...)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func bound(r *profile.Run) string {
	return strings.TrimSpace(r.Bind + " " + strings.Join(r.Pinned, " "))
}

// arguments are those of the program; its own name changes with every directory.
func arguments(r *profile.Run) string {
	if len(r.Command) < 2 {
		return ""
	}
	return strings.Join(r.Command[1:], " ")
}

// trust is what a profile does not support.
func trust(p *profile.Profile) (list []string) {
	if !p.Run.Complete {
		list = append(list, "the recording is not complete: the figures are of the run up to there")
	}
	if err := access.Support(p); err != nil {
		list = append(list, err.Error())
	}
	t := access.Total(p).DRAM
	if unknown := access.Pct(t.Unknown, t.Total()); unknown >= 1 {
		list = append(list, fmt.Sprintf("%s of the DRAM accesses are to pages whose home is not known; they are left out", units.FormatPercent(unknown)))
	}
	return list
}

// matching says what is in doubt, and where little is of both profiles.
func (d *differ) matching(r *Result) (list []string) {
	for _, x := range []struct {
		what    string
		entries []Entry
	}{{"objects", r.Objects}, {"loops", r.Loops}} {
		var doubtful []string
		var paired Number
		for _, e := range x.entries {
			if e.Doubtful && max(e.DRAM.Before, e.DRAM.After) >= tiny {
				doubtful = append(doubtful, e.Name)
			}
			if !e.New && !e.Gone {
				paired += e.DRAM.After
			}
		}
		if len(doubtful) > 0 {
			slices.Sort(doubtful)
			list = append(list, fmt.Sprintf("which %s of before these are is in doubt, as their functions were edited or compiled otherwise: %s", x.what, strings.Join(slices.Compact(doubtful), ", ")))
		}
		if len(x.entries) > 0 && paired < 50 {
			list = append(list, fmt.Sprintf("%s with %s of the DRAM accesses are new: are the profiles of one program?", x.what, units.FormatPercent(100-float64(paired))))
		}
	}
	return list
}
