package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// worsened are the objects that contribute significantly more than before, and, where
// none does, the loops.
func (d *differ) worsened(r *Result) []Worsened {
	list := d.reasons("object", r.Objects, d.whyObject)
	if len(list) == 0 {
		list = d.reasons("loop", r.Loops, d.whyLoop)
	}
	return list
}

func (d *differ) reasons(kind string, entries []Entry, why func(*Entry) []string) (list []Worsened) {
	for i := range entries {
		if e := &entries[i]; e.Contribution.Word == Worse {
			list = append(list, Worsened{kind, e.Name, e.Contribution.Points, why(e)})
		}
	}
	slices.SortStableFunc(list, func(a, b Worsened) int { return cmp.Compare(b.Points, a.Points) })
	return list
}

func (d *differ) whyObject(e *Entry) (why []string) {
	if e.New {
		return append([]string{"the profile before has no such object; it is first touched " + d.touched(d.after, e.after)}, d.loopsOf(e)...)
	}
	if was, is := d.touched(d.before, e.before), d.touched(d.after, e.after); d.touchMoved(e) {
		why = append(why, "first touched "+is+"; before "+was)
	}
	if moved(d.before.homes[e.before], d.after.homes[e.after]) > d.opt.Moved {
		why = append(why, "its pages are "+spread("on", d.after.homes[e.after])+"; before "+spread("on", d.before.homes[e.before]))
	}
	if moved(d.before.users[e.before], d.after.users[e.after]) > d.opt.Moved {
		why = append(why, "parallel code uses it "+spread("from", d.after.users[e.after])+"; before "+spread("from", d.before.users[e.before]))
	}
	if a, b := float64(e.Bytes.Before), float64(e.Bytes.After); a > 0 && b > 0 && ratio(a, b) < 1-d.opt.Moved {
		why = append(why, fmt.Sprintf("its size is %v; before %v", units.Bytes(b), units.Bytes(a)))
	}
	why = append(why, d.loopsOf(e)...)
	if len(why) == 0 {
		why = []string{busier(e)}
	}
	return why
}

func busier(e *Entry) string {
	return fmt.Sprintf("it takes %s of the DRAM accesses; before %s",
		units.FormatPercent(float64(e.DRAM.After)), units.FormatPercent(float64(e.DRAM.Before)))
}

// touchMoved reports whether the first touch of most pages is elsewhere, by names;
// where a profile does not tell, nothing is known to have moved.
func (d *differ) touchMoved(e *Entry) bool {
	x, known := d.before.firstTouch(e.before)
	y, knownToo := d.after.firstTouch(e.after)
	if known == 0 || knownToo == 0 {
		return false
	}
	a, b := d.before.serial(e.before), d.after.serial(e.after)
	if math.Abs(a-b) > d.opt.Moved {
		return true
	}
	return d.before.placeKey(x) != d.after.placeKey(y)
}

// serial is the share, in [0,1], of the pages of group g that serial code touched first.
func (s *side) serial(g int) float64 {
	in, all := 0, 0
	for t, n := range s.touches[g] {
		all += n
		if t.serial {
			in += n
		}
	}
	return units.Percent(float64(in), float64(all)) / 100
}

// placeKey names the function of a first touch; lines in it move.
func (s *side) placeKey(t touch) string {
	if t.place < 0 {
		return ""
	}
	f := frames(s.p, s.p.Places[t.place])[0]
	return f.file + ":" + f.function
}

// touched says where most pages of group g were first touched.
func (d *differ) touched(s *side, g int) string {
	t, share := s.firstTouch(g)
	if share == 0 {
		return "by nobody knows whom"
	}
	where := ""
	if t.place >= 0 {
		where = access.CodeName(s.p, s.p.Places[t.place])
	}
	if (where == "" || where == "?") && t.region >= 0 {
		where = access.RegionName(s.p, t.region)
	}
	by := "by the threads of a team"
	switch {
	case t.serial && t.rank == 0:
		by = "by the main thread, outside any loop"
	case t.serial:
		by = fmt.Sprintf("by thread %d, outside any loop", t.rank)
	}
	most := ""
	if share < 1-d.opt.Moved {
		most = fmt.Sprintf(" (%.0f %% of its pages)", 100*share)
	}
	return fmt.Sprintf("at %s %s", where, by) + most
}

// moved is the part, in [0,1], of a distribution over the nodes that is elsewhere in
// another.
func moved(before, after []uint64) float64 {
	a, b := sum(before), sum(after)
	if a == 0 || b == 0 {
		return 0
	}
	d := 0.0
	for i := range before {
		d += math.Abs(float64(before[i])/float64(a) - float64(after[i])/float64(b))
	}
	return d / 2
}

func sum(list []uint64) (n uint64) {
	for _, v := range list {
		n += v
	}
	return n
}

// spread says how something is spread over the nodes: "on node 0", "evenly on all 4
// nodes", "on node 0 (75 %), node 1 (25 %)".
func spread(preposition string, byNode []uint64) string {
	all := sum(byNode)
	order := make([]int, len(byNode))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(byNode[b], byNode[a]) })
	most, least := byNode[order[0]], byNode[order[len(order)-1]]
	switch {
	case all == 0:
		return preposition + " no node that is known"
	case float64(most) > 0.995*float64(all):
		return fmt.Sprintf("%s node %d", preposition, order[0])
	case float64(least) > 0.8*float64(most): // a fifth is as even as it gets with ends and halos
		if len(byNode) == 2 {
			return preposition + " both nodes alike"
		}
		return fmt.Sprintf("%s all %d nodes alike", preposition, len(byNode))
	}
	var parts []string
	const shown = 4
	for _, n := range order[:min(shown, len(order))] {
		if p := access.Pct(byNode[n], all); p >= 1 {
			parts = append(parts, fmt.Sprintf("node %d (%.0f %%)", n, p))
		}
	}
	return preposition + " " + strings.Join(parts, ", ")
}

// loopsOf says in which loops an object's contribution grew, those that make a quarter
// of it or more.
func (d *differ) loopsOf(e *Entry) (why []string) {
	type grown struct {
		region int
		points float64
	}
	var list []grown
	for _, u := range d.after.uses[e.after] {
		points := d.after.points(d.after.cells[cell{e.after, u.region}])
		if was := d.partner[u.region]; was >= 0 && e.before >= 0 {
			points -= d.before.points(d.before.cells[cell{e.before, was}])
		}
		if points > max(d.repeat, float64(e.Contribution.Points)/4) {
			list = append(list, grown{u.region, points})
		}
	}
	slices.SortStableFunc(list, func(a, b grown) int { return cmp.Compare(b.points, a.points) })
	for _, g := range list {
		said := fmt.Sprintf("%+.1f points in %s", g.points, access.RegionName(d.after.p, g.region))
		if changes := d.loopChanges(g.region); len(changes) > 0 {
			said += ", " + strings.Join(changes, ", ")
		}
		why = append(why, said)
	}
	return why
}

// loopChanges says what is different about a region of after, besides its accesses.
func (d *differ) loopChanges(region int) (list []string) {
	if was := d.partner[region]; was < 0 || d.before.loops[was].All.Total() == 0 {
		return []string{"a new " + kindName(d.after.p.Regions[region].Kind)}
	}
	x, y := &d.before.p.Regions[d.partner[region]], &d.after.p.Regions[region]
	if was, is := schedule(x), schedule(y); was != is && was != "" && is != "" {
		list = append(list, fmt.Sprintf("schedule %s; before %s", is, was))
	}
	if a, b := float64(x.Entries), float64(y.Entries); a > 0 && b > 0 && ratio(a, b) < 1-d.opt.Moved {
		list = append(list, fmt.Sprintf("entered %.0f times; before %.0f", b, a))
	}
	return list
}

func kindName(k profile.RegionKind) string {
	if k == profile.Loop {
		return "loop"
	}
	return "function"
}

func schedule(r *profile.Region) string {
	switch {
	case r.Schedule != "":
		return r.Schedule
	case r.Dynamic:
		return "dynamic"
	}
	return "" // not known
}

func (d *differ) whyLoop(e *Entry) (why []string) {
	if changes := d.loopChanges(e.after); len(changes) > 0 {
		why = append(why, strings.Join(changes, ", "))
	}
	for _, p := range d.objectPairs {
		points := d.after.points(d.after.cells[cell{p.after, e.after}])
		if e.before >= 0 {
			points -= d.before.points(d.before.cells[cell{p.before, e.before}])
		}
		if points < max(d.repeat, float64(e.Contribution.Points)/4) {
			continue
		}
		said := fmt.Sprintf("%+.1f points on %s", points, d.after.groups[p.after].Name)
		if a, b := d.before.homes[p.before], d.after.homes[p.after]; moved(a, b) > d.opt.Moved {
			said += ", whose pages are " + spread("on", b) + "; before " + spread("on", a)
		}
		why = append(why, said)
	}
	if len(why) == 0 {
		why = []string{busier(e)}
	}
	return why
}
