package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// entries writes the chosen units as a plan does, those that save most first.
func (d *demand) entries(groups []group) []plan.Entry {
	type at struct {
		g *group
		u *unit
	}
	var list []at
	for g := range groups {
		for u := range groups[g].chosen {
			list = append(list, at{&groups[g], &groups[g].chosen[u]})
		}
	}
	slices.SortStableFunc(list, func(a, b at) int { return cmp.Compare(b.u.saves(), a.u.saves()) })
	entries := make([]plan.Entry, len(list))
	for i, a := range list {
		entries[i] = d.entry(a.g, a.u)
	}
	return entries
}

func (d *demand) entry(g *group, u *unit) plan.Entry {
	o := &d.p.Objects[u.objects[0]]
	e := plan.Entry{
		Name: d.name(g, u), Kind: string(o.Kind), Bytes: d.bytes(u), Why: d.why(g, u),
		Stack: g.stack, Instance: u.instance, Place: u.place, Touched: d.touched(u),
		Predict: plan.Predict{RemoteBefore: pct(u.before, u.all), RemoteAfter: pct(u.after, u.all)},
	}
	if o.Kind == profile.Global {
		m := d.p.Modules[o.Module]
		e.Symbol, e.File = o.Symbol, o.File
		e.Module = plan.Module{Name: moduleName(d.p, o.Module), BuildID: m.BuildID}
	}
	return e
}

func pct(part, whole uint64) float64 { return round(units.Percent(float64(part), float64(whole))) }

// name is what a person recognises, with the instance where there are several.
func (d *demand) name(g *group, u *unit) string {
	name := clean(d.p.Objects[g.objects[0]].Name)
	if name == "" {
		name = "unnamed"
	}
	switch in := u.instance; {
	case in == nil:
		return name
	case in.Count > 1:
		return fmt.Sprintf("%s, %d to %d of thread %d", name, in.First, in.First+in.Count-1, in.Rank)
	default:
		return fmt.Sprintf("%s, %d of thread %d", name, in.First, in.Rank)
	}
}

// clean is s on one line.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// maxTouched bounds the runs of Entry.Touched; a more ragged map is left out,
// and then every page counts as touched.
const maxTouched = 4096

// touched is the pages of u that became resident in the profiled run; nil is all
// of them, or not known.
func (d *demand) touched(u *unit) plan.Runs {
	if u.instance == nil && len(u.objects) > 1 {
		return nil
	}
	var seen []int
	add := func(o int, number func(int) int) {
		for _, i := range d.byObject[o] {
			if at := number(d.p.Pages[i].Index); at >= 0 && at < u.pages && (len(seen) == 0 || seen[len(seen)-1] < at) {
				seen = append(seen, at)
			}
		}
	}
	for _, o := range u.objects {
		s := spanOf(&d.p.Objects[o])
		if u.instance == nil || u.instance.Count == 1 {
			add(o, func(i int) int { return i })
			continue
		}
		base := s.each * (d.p.Objects[o].Ordinal - u.instance.First)
		add(o, func(i int) int { return base + i - s.first })
	}
	if len(seen) == u.pages || len(seen) == 0 {
		return nil
	}
	return ranges(seen, u.pages)
}

// ranges is the ascending list seen of pages as runs; nil if these are too many.
func ranges(seen []int, pages int) plan.Runs {
	var r plan.Runs
	add := func(node, count int) {
		if last := len(r) - 1; count > 0 && last >= 0 && r[last].Node == node {
			r[last].Count += count
		} else if count > 0 {
			r = append(r, plan.Run{Node: node, Count: count})
		}
	}
	next := 0
	for _, i := range seen {
		add(-1, i-next)
		add(1, 1)
		next = i + 1
	}
	add(-1, pages-next)
	if len(r) > maxTouched {
		return nil
	}
	return r
}
