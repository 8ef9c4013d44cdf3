package planner

import (
	"fmt"
	"path"
	"slices"

	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// Further is the profile of a further run.
type Further struct {
	File     string // its name, for messages
	Checksum string // kept in the plan
	Profile  *profile.Profile
}

// checkAgain is why the profiles cannot be of runs that repeat each other; nil if
// they can.
func checkAgain(p *profile.Profile, opt *Options) error {
	seen := []Further{{"the first profile", opt.Profile, p}}
	for _, f := range opt.Again {
		for _, s := range seen {
			if sameRun(&f, &s) {
				return fmt.Errorf("%s: it is of the same run as %s, and a run repeats itself in everything; profile a second time", f.File, s.File)
			}
		}
		if err := sameProgram(p, f.Profile); err != nil {
			return fmt.Errorf("%s: %w", f.File, err)
		}
		seen = append(seen, f)
	}
	return nil
}

// sameRun reports whether a and b are of one run, though perhaps of two files.
func sameRun(a, b *Further) bool {
	x, y := &a.Profile.Run, &b.Profile.Run
	return a.Checksum != "" && a.Checksum == b.Checksum || !x.Start.IsZero() && x.Start.Equal(y.Start) && x.Host == y.Host
}

// sameProgram is why two profiles cannot be of runs of one program under the same
// conditions.
func sameProgram(p, again *profile.Profile) error {
	a, b := &p.Run, &again.Run
	switch {
	case !slices.Equal(a.Command, b.Command):
		return fmt.Errorf("it is of %q, the first of %q; give profiles of one command", b.Command, a.Command)
	case a.Topology.String() != b.Topology.String() || a.Bind != b.Bind:
		return fmt.Errorf("it is of %v, bound %s, the first of %v, bound %s; give profiles of one machine and binding", b.Topology, b.Bind, a.Topology, a.Bind)
	case a.Period != b.Period:
		return fmt.Errorf("it has a period of %d, the first of %d; give profiles of one --period", b.Period, a.Period)
	}
	if name := rebuilt(p, again); name != "" {
		return fmt.Errorf("it is of another build of %s than the first; profile both runs with the same files", name)
	}
	if x, y := threads(p), threads(again); x != y && (!ownThreads(p) || 3*min(x, y) < 2*max(x, y)) {
		return fmt.Errorf("it has %d threads, the first %d; give profiles of one number of threads (OMP_NUM_THREADS)", y, x)
	}
	return nil
}

// rebuilt names a module that both have, but not of one build; "" if none.
func rebuilt(p, again *profile.Profile) string {
	builds := make(map[string][]string)
	for i, m := range again.Modules {
		name := moduleName(again, i)
		builds[name] = append(builds[name], m.BuildID)
	}
	for i, m := range p.Modules {
		name := moduleName(p, i)
		if ids := builds[name]; name != "" && name != OwnRuntime && m.BuildID != "" &&
			len(ids) > 0 && !slices.Contains(ids, m.BuildID) && !slices.Contains(ids, "") {
			return path.Base(name)
		}
	}
	return ""
}

// threads counts the ranks.
func threads(p *profile.Profile) int {
	ranks := make(map[int]bool)
	for _, t := range p.Threads {
		ranks[t.Rank] = true
	}
	return len(ranks)
}

// ownThreads reports whether the number of ranks may differ between runs of one
// program: threads that it starts itself, or that teams inside teams do, reuse the
// ranks of those that have ended by then.
func ownThreads(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Regions, func(r profile.Region) bool { return r.Thread != "" || r.Dynamic })
}

// mostly is the share of the accesses from which on a further run lacks too much.
const mostly = 0.5

// counterparts refuses further runs that did not enter the same regions.
func (d *demand) counterparts() error {
	for i, m := range d.chance.Missing {
		if m.Regions > mostly {
			return fmt.Errorf("%s: it has no accesses by the code that makes %s of those of the first profile; give profiles of runs that do the same",
				d.opt.Again[i].File, units.FormatPercent(100*m.Regions))
		}
	}
	return nil
}

// missingPages warns of further runs that did not use the same pages.
func (d *demand) missingPages() []string {
	var list []string
	for i, m := range d.chance.Missing {
		if m.Pages > mostly {
			list = append(list, fmt.Sprintf("%s has no counterpart of the pages of %s of the accesses, which count as chance: the runs allocated other memory, or a sampled profile is too short",
				d.opt.Again[i].File, units.FormatPercent(100*m.Pages)))
		}
	}
	return list
}
