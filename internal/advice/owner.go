package advice

import (
	"slices"

	"numaopt/internal/classify"
	"numaopt/internal/profile"
)

// owners finds arrays of which a loop uses less each time, as elimination does: its
// bounds go with the row that all threads read. Shared out evenly, the rest of the rows
// moves over the nodes; shared out by where the rows are, each stays at home.
func (f *finder) owners() (items []Item) {
	for g := range f.groups {
		if f.taken[g] || !f.matters(f.far[g]) || len(f.groups[g].Objects) > 1 {
			continue
		}
		x, foreign := f.shrinking(g)
		if x == nil {
			continue
		}
		item := x.predictOwner(foreign)
		if !f.matters(item.saved) {
			continue
		}
		f.taken[g], f.follows[g] = true, true
		items = append(items, x.item(item))
	}
	return items
}

// shrinking is the family of group g alone, along its slowest axis, if the source of all
// its loops is understood and the bounds of one of them shrink. foreign is the rows that
// each of the loops reads beside its own in every instance, by region.
func (f *finder) shrinking(g int) (x *family, foreign map[int]int) {
	w := &f.want[g]
	if w.Shape == nil || len(w.Shape.Strides()) == 0 {
		return nil, nil
	}
	list, _ := f.dims(g)
	if list[0] < int64(f.n) {
		return nil, nil
	}
	x = &family{f: f, axes: []int{0}, extent: list[:1]}
	x.join(g)
	foreign = make(map[int]int)
	shrinks := false
	for _, u := range x.loops {
		if x.read(u); u.nest == nil || x.members[0].unnamed {
			return nil, nil
		}
		rows, ok := u.nest.foreign(x.members[0].name)
		if !ok {
			return nil, nil
		}
		foreign[u.region] = len(rows)
		shrinks = shrinks || slices.ContainsFunc(rows, func(row string) bool {
			return word.FindString(row) == row && words(u.nest.par.Lo+" "+u.nest.par.Hi, row)
		})
	}
	if !shrinks {
		return nil, nil
	}
	return x, foreign
}

// foreign is the slowest subscripts of an array in the loop that are not its own index,
// and the same in all iterations. ok is false where others occur, or where an element
// that another iteration owns is written.
func (n *nest) foreign(name string) (rows []string, ok bool) {
	code := n.file.code[n.par.start:n.par.end]
	var inner []string
	for _, l := range n.file.loops {
		if l.head >= n.par.head && l.after <= n.par.after {
			inner = append(inner, word.FindAllString(n.file.code[l.head:l.start], 2)...)
			inner = append(inner, l.Var)
		}
	}
	if len(n.file.calls(n.par)) > 0 {
		return nil, false
	}
	for _, r := range n.file.references(code, name) {
		if len(r.subscripts) == 0 {
			return nil, false
		}
		row := squeezed(r.subscripts[0])
		if k, own := offset(row, n.par.Var); own && k == 0 {
			continue
		}
		if words(row, inner...) || word.FindString(row) != row || n.file.stored().MatchString(code[r.end:]) {
			return nil, false
		}
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	return rows, true
}

// predictOwner re-evaluates the table for a family of one array whose loops follow its
// rows: they reach to other nodes for what shares a page with them, and for the rows
// that all threads read, of which each node fetches every line once an instance.
func (x *family) predictOwner(foreign map[int]int) (item Item) {
	f, m := x.f, x.members[0]
	everywhere := float64(f.n-1) / float64(f.n)
	f.each(func(r *profile.Row) {
		g, count, before := f.of[f.p.Pages[r.Page].Object], float64(r.Count), float64(f.plan.Remote(r))
		u := x.loop(int(r.Region))
		switch {
		case g == m.group && u != nil:
			item.saved += before - m.loss*count
		case g == m.group, u != nil && f.divides(int(r.Region), g):
			// Code that does not follow the rows, and arrays whose parts went with the
			// iterations.
			item.saved += before - everywhere*count
		default:
			return
		}
		item.use(int(r.Region), g)
	})
	for _, u := range x.loops {
		lines := (m.layout.stride(0) + int64(f.line()) - 1) / int64(f.line())
		item.saved -= float64(int64(foreign[u.region])*lines) * float64(f.n-1) * float64(max(1, f.p.Regions[u.region].Entries))
	}
	return item
}

// divides reports whether a loop divides group g over the nodes.
func (f *finder) divides(region, g int) bool {
	return slices.ContainsFunc(f.want[g].Loops, func(l classify.LoopPattern) bool { return l.Region == region && l.Divides() })
}
