package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/classify"
	"numaopt/internal/pattern"
	"numaopt/internal/profile"
	"numaopt/internal/shape"
	"numaopt/internal/units"
)

// axisName names axes as numaopt.h does.
var axisName = []string{"X", "Y", "Z"}

// family is arrays that loops divide along the same axes, and those loops: they
// follow one distribution together, or none does.
type family struct {
	f       *finder
	axes    []int   // ascending: two are block-exclusive, one is wise
	extent  []int64 // along the axes
	members []*member
	loops   []*use // as they are in the source
}

// member is one group of objects, an array.
type member struct {
	group    int
	name     string // variable; made up where it is not known
	unnamed  bool
	flat     bool // it is indexed by hand, as rows of one long array
	shape    shape.Shape
	layout   *layout
	padded   bool
	unpadded string // why it is not, where that would save something
	loss     float64
	objects  []int
}

// use is what a loop of a family does.
type use struct {
	region   int
	axis     int // that its threads share
	accesses float64
	down     bool    // its threads take descending parts
	nest     *nest   // the loops of its source; nil if not understood
	par      *loop   // where nest is nil: the loop that its threads share, if its bounds are known
	sweeps   []*loop // and those along the other axis, one after the other
	why      string  // why nest is nil
	lost     bool    // its source is not there
	inside   bool    // its directive is in a parallel region that begins before
	whole    bool    // it needs whole lines along the other axis
	reach    []reach // by member
}

// reach is how many indices beyond a cut between phases a loop reaches in a member.
type reach struct {
	rows    int
	guessed bool
	carried int // the most on one side, of what it writes itself, too: a dependence
}

// axisOf is the axis along which a loop divides an array, -1 where it does not.
func axisOf(l *classify.LoopPattern, s *shape.Shape, bytes int64) int {
	kind := l.Kind
	if kind == pattern.Inverse || kind == pattern.Permuted {
		kind = pattern.View(l.Period, bytes, s.Strides())
	}
	switch kind {
	case pattern.XWise:
		return 0
	case pattern.YWise:
		return 1
	case pattern.ZWise:
		return 2
	}
	return -1
}

// conflictShare is the share of an array's accesses, in [0,1], from which an axis that
// loops divide it along is one that it must be divided along.
const conflictShare = 0.05

// axesOf is the axes that the loops divide group g along, ascending, two at most.
func (f *finder) axesOf(g int) (axes []int) {
	w := &f.want[g]
	if w.Shape == nil || len(w.Shape.Strides()) == 0 {
		return nil
	}
	var weight [3]float64
	all := 0.0
	for i := range w.Loops {
		all += float64(w.Loops[i].Accesses)
		if a := axisOf(&w.Loops[i], w.Shape, f.bytes(g)); a >= 0 {
			weight[a] += float64(w.Loops[i].Accesses)
		}
	}
	for a, x := range weight {
		if x >= conflictShare*all && x > 0 && (a < len(w.Shape.Dims) || w.Shape.Source == shape.Inferred) {
			axes = append(axes, a)
		}
	}
	if len(axes) > 2 {
		slices.SortFunc(axes, func(a, b int) int { return cmp.Compare(weight[b], weight[a]) })
		axes = axes[:2]
		slices.Sort(axes)
	}
	return axes
}

// bytes is the size of one object of group g.
func (f *finder) bytes(g int) int64 { return f.p.Objects[f.groups[g].Objects[0]].Bytes }

// dims is the dimensions of group g's array as elements. Of rows that were inferred
// the last is the elements of a row: of the size that the debug information gives, else
// bytes.
func (f *finder) dims(g int) (list []int64, elem int64) {
	s := f.want[g].Shape
	if s.Source != shape.Inferred {
		return s.Dims, s.Elem
	}
	elem = 1
	if e := f.opt.Shapes[f.groups[g].Objects[0]].Elem; e > 0 && s.Elem%e == 0 {
		elem = e
	}
	return append(slices.Clone(s.Dims), s.Elem/elem), elem
}

// phases finds the families that a distribution along their axes makes more local.
func (f *finder) phases() (items []Item) {
	order := make([]int, 0, len(f.groups))
	for g := range f.groups {
		if f.matters(f.far[g]) {
			order = append(order, g)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.far[b], f.far[a]) })
	for _, g := range order {
		if f.taken[g] {
			continue
		}
		x := f.family(g)
		if x == nil {
			continue
		}
		item := x.predict()
		if !f.matters(item.saved - item.extra) {
			continue
		}
		for _, m := range x.members {
			f.taken[m.group], f.follows[m.group] = true, true
		}
		items = append(items, x.item(item))
	}
	return items
}

// family gathers the arrays and loops around group g; nil where no distribution of
// it is to be had.
func (f *finder) family(g int) *family {
	axes := f.axesOf(g)
	if len(axes) == 0 || len(axes) == 1 && axes[0] == 0 || len(f.groups[g].Objects) > 1 {
		return nil
	}
	x := &family{f: f, axes: axes}
	list, _ := f.dims(g)
	for _, a := range axes {
		if a >= len(list) || list[a] < int64(f.n) {
			return nil
		}
		x.extent = append(x.extent, list[a])
	}
	x.join(g)
	for grown := true; grown; {
		grown = false
		for h := range f.groups {
			if !f.taken[h] && !x.has(h) && x.fits(h) {
				x.join(h)
				grown = true
			}
		}
	}
	slices.SortStableFunc(x.loops, func(a, b *use) int {
		r, q := &f.p.Regions[a.region], &f.p.Regions[b.region]
		return cmp.Or(cmp.Compare(r.File, q.File), cmp.Compare(r.Line, q.Line))
	})
	for _, m := range x.members {
		if why := x.notPadded(m); m.padded && why != "" {
			x.unpad(m, why)
		}
	}
	for _, u := range x.loops {
		x.read(u)
	}
	return x
}

func (x *family) has(g int) bool {
	return slices.ContainsFunc(x.members, func(m *member) bool { return m.group == g })
}

// fits reports whether group g has the family's extents and is divided by one of its
// loops.
func (x *family) fits(g int) bool {
	w := &x.f.want[g]
	if w.Shape == nil || len(x.f.groups[g].Objects) > 1 {
		return false
	}
	list, _ := x.f.dims(g)
	for i, a := range x.axes {
		if a >= len(list) || list[a] != x.extent[i] {
			return false
		}
	}
	return slices.ContainsFunc(w.Loops, func(l classify.LoopPattern) bool {
		return l.Divides() && x.loop(l.Region) != nil
	})
}

// loop is the family's use of region i, nil if it is none of its loops.
func (x *family) loop(i int) *use {
	for _, u := range x.loops {
		if u.region == i {
			return u
		}
	}
	return nil
}

// join makes group g a member, and the loops that divide it the family's.
func (x *family) join(g int) {
	f, w := x.f, &x.f.want[g]
	m := &member{group: g, shape: *w.Shape, objects: f.groups[g].Objects}
	m.name, m.unnamed = x.nameOf(g)
	m.flat = m.shape.Source == shape.Inferred && !m.unnamed
	list, elem := f.dims(g)
	last := x.axes[len(x.axes)-1]
	for len(list) > last+1 { // further dimensions are part of the element
		elem *= list[len(list)-1]
		list = list[:len(list)-1]
	}
	plain, padded := newLayout(list, elem, x.axes, f.n), newLayout(list, elem, x.axes, f.n)
	padded.pad()
	head := int64(f.p.Objects[m.objects[0]].Head)
	m.layout, m.loss = plain, plain.loss(head)
	// Padding changes every declaration of the array; a point of its accesses is worth it.
	if loss := padded.loss(0); loss < m.loss-0.01 && (m.shape.Source != shape.Inferred || m.flat && len(list) == 2) {
		m.layout, m.loss, m.padded = padded, loss, true
	}
	x.members = append(x.members, m)
	for i := range w.Loops {
		l := &w.Loops[i]
		a := axisOf(l, w.Shape, f.bytes(g))
		if !slices.Contains(x.axes, a) || f.p.Regions[l.Region].Kind != profile.Loop {
			continue
		}
		u := x.loop(l.Region)
		if u == nil {
			u = &use{region: l.Region, axis: a, down: l.Kind == pattern.Inverse}
			x.loops = append(x.loops, u)
		}
		u.accesses += float64(l.Accesses)
	}
}

// nameOf is the variable that is group g, made up where nobody knows it.
func (x *family) nameOf(g int) (name string, unnamed bool) {
	name, named := x.f.variable(g)
	if named && !slices.ContainsFunc(x.members, func(m *member) bool { return m.name == name }) {
		return name, false
	}
	name = "data"
	if n := len(x.members); n > 0 {
		name = fmt.Sprint("data", n+1)
	}
	return name, true
}

// serial is the axis that the phases of u cut: the family's other one; -1 if it has
// one only.
func (x *family) serial(u *use) int {
	for _, a := range x.axes {
		if a != u.axis {
			return a
		}
	}
	return -1
}

// predict re-evaluates the table for the family: what becomes local, and the accesses
// across the cuts that come to be.
func (x *family) predict() (item Item) {
	f := x.f
	type key struct{ region, group int }
	parts := make(map[key]*classify.LoopPattern)
	for g := range f.want {
		for i := range f.want[g].Loops {
			l := &f.want[g].Loops[i]
			parts[key{l.Region, g}] = l
		}
	}
	everywhere := float64(f.n-1) / float64(f.n)
	f.each(func(r *profile.Row) {
		page := &f.p.Pages[r.Page]
		g, count, before := f.of[page.Object], float64(r.Count), float64(f.plan.Remote(r))
		u := x.loop(int(r.Region))
		i := slices.IndexFunc(x.members, func(m *member) bool { return m.group == g })
		l := parts[key{int(r.Region), g}]
		switch {
		case u == nil && i < 0:
			return
		case i < 0:
			// Another array: its parts go with the loop's iterations no longer, but where
			// all nodes use it anyway.
			if l != nil && l.Divides() && len(x.axes) > 1 && l.Kind != pattern.Single {
				item.saved += before - everywhere*count
				item.use(int(r.Region), g)
			}
		case u == nil || l == nil || u.whole:
			// Code that does not follow the distribution.
			item.saved += before - everywhere*count
			item.use(int(r.Region), g)
		default:
			item.use(int(r.Region), g)
			m := x.members[i]
			if !within(l, page.Index, f.p.Objects[page.Object].Head, int(f.p.Threads[r.Thread].Node)) {
				item.saved += before - count // reached into a neighbour's part, as it will
				return
			}
			item.saved += before - m.loss*count
			if s := x.serial(u); s >= 0 && i < len(u.reach) {
				item.extra += count * float64(u.reach[i].rows*(f.n-1)) / float64(x.extent[slices.Index(x.axes, s)])
			}
		}
	})
	return item
}

// within reports whether page, with the object's first byte at head of page 0, has
// bytes of the node's part in l.
func within(l *classify.LoopPattern, page, head, node int) bool {
	if l.Kind == pattern.Single {
		return l.Node == node
	}
	lo := max(0, int64(page)*units.PageSize-int64(head))
	hi := int64(page+1)*units.PageSize - int64(head)
	for _, p := range l.Parts {
		if p.Node != node {
			continue
		}
		// [lo, hi) meets [From, To) of some period.
		first := (lo - p.To) / l.Period
		if lo < p.To {
			first--
		}
		for k := max(0, first); k*l.Period+p.From < hi; k++ {
			if k*l.Period+p.To > lo {
				return true
			}
		}
	}
	return false
}

// item completes what predict began.
func (x *family) item(item Item) Item {
	f := x.f
	item.Kind = Phases
	if len(x.axes) == 1 {
		item.Kind = Owner
		if slices.ContainsFunc(x.members, func(m *member) bool { return m.padded }) {
			item.Kind = Pad
		}
	}
	wants := make([][]string, 3)
	for _, u := range x.loops {
		name := f.region(u.region)
		item.Loops = append(item.Loops, fmt.Sprintf("%s: %s", name, viewName(u)))
		wants[u.axis] = append(wants[u.axis], name)
	}
	for _, m := range x.members {
		item.Objects = append(item.Objects, f.groups[m.group].Name)
	}
	item.Why = x.why(wants)
	for _, m := range x.members {
		if m.shape.Source != shape.Declared {
			item.Notes = append(item.Notes, fmt.Sprintf("The array behind %s is taken to be %v (%s); --shape %s says it.", f.groups[m.group].Name, m.shape, m.shape.Source, f.shapeOption(m.group)))
		}
	}
	for _, u := range x.loops {
		item.Assumed = item.Assumed || u.why != "" && f.matters(u.accesses)
	}
	x.describe(&item)
	return item
}

func viewName(u *use) string {
	name := strings.ToLower(axisName[u.axis]) + "-wise"
	if u.down {
		name += ", descending"
	}
	if u.whole {
		name += ", stays as it is"
	}
	return name
}

// whyParts says what becomes of parts along one axis that are no whole pages.
func (x *family) whyParts() string {
	padded, loss := false, 0.0
	for _, m := range x.members {
		padded, loss = padded || m.padded, max(loss, m.loss)
	}
	if padded {
		return "in parts that are no whole pages, so that nodes share those at the borders: rows become longer, and the parts whole pages."
	}
	return fmt.Sprintf("and not always in the same parts. Along one distribution, each page goes to the node that owns most of it, and each thread takes the iterations whose elements its node owns. Rows stay as long as they are, so that nodes share the pages at the borders of their parts: up to %s of these accesses stay remote there.", units.FormatPercent(100*loss))
}

// why is the conflict in a sentence.
func (x *family) why(wants [][]string) string {
	var list []string
	for a, loops := range wants {
		if len(loops) > 0 {
			list = append(list, fmt.Sprintf("%s-wise by %s", strings.ToLower(axisName[a]), strings.Join(loops, ", ")))
		}
	}
	var names []string
	for _, m := range x.members {
		names = append(names, m.name)
	}
	verb := "is"
	if len(names) > 1 {
		verb = "are"
	}
	if len(x.axes) == 1 {
		return fmt.Sprintf("%s %s used %s, %s", strings.Join(names, ", "), verb, list[0], x.whyParts())
	}
	return fmt.Sprintf("%s %s used %s: no placement serves both. In blocks of which every node owns one in each row and column of blocks, gone through in %d phases, every loop finds its data at home (CGO'12 §4.1, fig. 13(c)).",
		strings.Join(names, ", "), verb, strings.Join(list, ", but "), x.f.n)
}
