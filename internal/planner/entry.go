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
	slices.SortStableFunc(list, func(a, b at) int { return cmp.Compare(b.u.gain, a.u.gain) })
	entries := make([]plan.Entry, len(list))
	for i, a := range list {
		entries[i] = d.entry(a.g, a.u)
	}
	return entries
}

// unitName is what units of two plans made from one profile are told by: the first
// object of their group, and which of its allocations they are.
type unitName struct {
	object   int
	instance plan.Instance // zero is all
}

func (g *group) unitName(u *unit) unitName {
	name := unitName{object: g.objects[0]}
	if u.instance != nil {
		name.instance = *u.instance
	}
	return name
}

// placesOf is where the chosen units of groups are.
func placesOf(groups []group) map[unitName]plan.Distribution {
	places := make(map[unitName]plan.Distribution)
	for i := range groups {
		for k := range groups[i].chosen {
			u := &groups[i].chosen[k]
			places[groups[i].unitName(u)] = u.place
		}
	}
	return places
}

// otherPlace is Entry.Otherwise of a unit: by the plan without schedules, where that
// has the same unit.
func (d *demand) otherPlace(g *group, u *unit) *plan.Distribution {
	if d.otherwise == nil {
		return nil
	}
	place, ok := d.otherwise[g.unitName(u)]
	if !ok {
		place = d.asTouched(u)
	}
	if place.Equal(u.place) {
		return nil
	}
	return &place
}

// asTouched describes where first touch put the pages of u in the profiled run: what is
// placed already when a schedule turns out not to hold has to be told where to go.
func (d *demand) asTouched(u *unit) plan.Distribution {
	v := unit{objects: u.objects, pages: u.pages, cells: slices.Clone(u.cells)}
	for i := range v.cells {
		c := &v.cells[i]
		if c.home = int(d.p.Pages[c.profile].Home); c.home >= 0 {
			c.use, c.stay, c.tossed = make([]uint64, d.n), 0, true
			c.use[c.home] = c.all
		}
	}
	if d.fit(&v); v.place.Policy == "" {
		return *plan.FirstTouch()
	}
	return v.place
}

func (d *demand) entry(g *group, u *unit) plan.Entry {
	o := &d.p.Objects[u.objects[0]]
	e := plan.Entry{
		Name: d.name(g, u), Kind: string(o.Kind), Bytes: d.bytes(u), Why: d.why(g, u),
		Stack: g.stack, Instance: u.instance, Place: u.place, Otherwise: d.otherPlace(g, u), Touched: d.touched(u),
		Predict: plan.Predict{RemoteBefore: pct(d.profiled(u.cells)), RemoteAfter: pct(u.after, u.all)},
	}
	if o.Kind == profile.Global {
		m := d.p.Modules[o.Module]
		e.Symbol, e.File = o.Symbol, o.File
		e.Module = plan.Module{Name: moduleName(d.p, o.Module), BuildID: m.BuildID}
	}
	return e
}

// profiled is the accesses to cells as profiled, and the remote ones of them.
func (d *demand) profiled(cells []cell) (remote, all uint64) {
	for i := range cells {
		remote += d.far[cells[i].profile]
		all += d.whole[cells[i].profile]
	}
	return remote, all
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

// maxTouched bounds the runs of Entry.Touched; in a more ragged map short gaps
// count as touched, so that no touched page is left out.
const maxTouched = 4096

// gap is the pages [from, to) of a unit that nobody is known to have touched.
type gap struct{ from, to int }

// touched is the pages of u that became resident in the profiled run: of objects
// that are placed each by itself, the pages that all of them have in common. It is
// empty, which stands for all pages, where they have none.
func (d *demand) touched(u *unit) plan.Runs {
	var gaps []gap
	add := func(seen []int, pages int) {
		next := 0
		for _, i := range append(seen, pages) {
			if i > next {
				gaps = append(gaps, gap{position(next, pages, u.pages), position(i-1, pages, u.pages) + 1})
			}
			next = max(next, i+1)
		}
	}
	if u.instance != nil && u.instance.Count > 1 {
		add(d.seenRows(u), u.pages)
	} else {
		for _, o := range u.objects {
			pages := spanOf(&d.p.Objects[o]).pages
			add(d.seen(o, pages, 0), pages)
		}
	}
	return coarse(runs(gaps, u.pages), maxTouched)
}

// seen lists the touched pages of object o in ascending order, first of them in
// the unit's numbering.
func (d *demand) seen(o, pages, first int) []int {
	var list []int
	for _, i := range d.byObject[o] {
		if at := first + d.p.Pages[i].Index; at >= 0 && at < pages && (len(list) == 0 || list[len(list)-1] < at) {
			list = append(list, at)
		}
	}
	return list
}

// seenRows is seen of all objects of u as rows of one array.
func (d *demand) seenRows(u *unit) []int {
	var list []int
	for _, o := range u.objects {
		s := spanOf(&d.p.Objects[o])
		list = append(list, d.seen(o, u.pages, s.each*(d.p.Objects[o].Ordinal-u.instance.First)-s.first)...)
	}
	slices.Sort(list)
	return list
}

// runs is what lies between gaps as runs.
func runs(gaps []gap, pages int) plan.Runs {
	var r plan.Runs
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(a.from, b.from) })
	next := 0
	for _, g := range gaps {
		r = addRun(r, 1, g.from-next)
		r = addRun(r, -1, g.to-max(g.from, next))
		next = max(next, g.to)
	}
	return addRun(r, 1, pages-next)
}

// addRun appends count pages, to the last run where it is of the same node.
func addRun(r plan.Runs, node, count int) plan.Runs {
	switch last := len(r) - 1; {
	case count <= 0:
		return r
	case last >= 0 && r[last].Node == node:
		r[last].Count += count
		return r
	default:
		return append(r, plan.Run{Node: node, Count: count})
	}
}

// coarse is r in at most limit runs: the shortest gaps count as touched. It is
// nil where r has touched nothing.
func coarse(r plan.Runs, limit int) plan.Runs {
	var gaps []int
	for i := range r {
		if r[i].Node < 0 {
			gaps = append(gaps, i)
		}
	}
	if len(gaps) == len(r) {
		return nil
	}
	if len(r) <= limit {
		return r
	}
	slices.SortStableFunc(gaps, func(a, b int) int { return cmp.Compare(r[b].Count, r[a].Count) })
	keep := make(map[int]bool)
	for _, i := range gaps[:min((limit-1)/2, len(gaps))] {
		keep[i] = true
	}
	var out plan.Runs
	for i := range r {
		node := 1
		if keep[i] {
			node = -1
		}
		out = addRun(out, node, r[i].Count)
	}
	return out
}
