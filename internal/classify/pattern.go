package classify

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"numaopt/internal/access"
	"numaopt/internal/pattern"
	"numaopt/internal/profile"
	"numaopt/internal/shape"
	"numaopt/internal/units"
)

// Patterns is how the loops use one group of objects.
type Patterns struct {
	// Shape is the array behind each object of the group; nil if not known.
	Shape *shape.Shape
	Doubt string        // see shape.Shape
	Loops []LoopPattern // those with most accesses first
	// Together is the pattern of all loops' accesses together.
	Together pattern.Result
	pattern.Conflict
}

// LoopPattern is what one region wants of a group.
type LoopPattern struct {
	Region int
	pattern.Want
}

// The least share of the program's DRAM accesses, in [0,1], for which a group is
// looked at, and of the group's for which a loop is: less is worth no change.
const (
	patternGroup = 0.001
	patternLoop  = 0.01
)

// FindPatterns returns the patterns of each group of access.Groups, from the DRAM
// accesses of parallel code, or all of them of a loop that runs in the caches; no loops for
// what no plan places, and on one node.
// shapes are by object.
// Several instances that live together count as one object, one behind the other in
// the order of their threads and allocation, instances that follow each other as the
// same object again.
func FindPatterns(p *profile.Profile, groups []access.Group, of []int, shapes map[int]shape.Shape) []Patterns {
	f := NewPatternFinder(p, groups, of, shapes)
	list := make([]Patterns, len(groups))
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for g := range next {
				list[g] = f.Find(g)
			}
		})
	}
	for g := range groups {
		next <- g
	}
	close(next)
	wait.Wait()
	return list
}

// PatternFinder is FindPatterns for one group after the other: who shows some need not
// wait for all.
type PatternFinder struct {
	p      *profile.Profile
	groups []access.Group
	shapes map[int]shape.Shape
	serial func(*profile.Row) bool
	rows   [][]int32 // of groups that matter
}

// NewPatternFinder takes what FindPatterns does.
func NewPatternFinder(p *profile.Profile, groups []access.Group, of []int, shapes map[int]shape.Shape) *PatternFinder {
	f := &PatternFinder{p: p, groups: groups, shapes: shapes, serial: access.SerialCode(p)}
	if len(p.Run.Topology.Nodes) > 1 {
		f.collect(of)
	}
	return f
}

// collect finds the rows of each group that matters.
func (f *PatternFinder) collect(of []int) {
	sums, all := make([]uint64, len(f.groups)), uint64(0)
	counts := make([]int, len(f.groups))
	for i := range f.p.Rows {
		r := &f.p.Rows[i]
		g := of[f.p.Pages[r.Page].Object]
		counts[g]++
		if r.Level == profile.DRAM {
			all += r.Count
			if !f.serial(r) {
				sums[g] += r.Count
			}
		}
	}
	f.rows = make([][]int32, len(f.groups))
	for g := range f.groups {
		if Placeable(f.groups[g].Kind) && sums[g] > 0 && float64(sums[g]) >= patternGroup*float64(all) {
			f.rows[g] = make([]int32, 0, counts[g])
		}
	}
	for i := range f.p.Rows {
		if g := of[f.p.Pages[f.p.Rows[i].Page].Object]; f.rows[g] != nil {
			f.rows[g] = append(f.rows[g], int32(i))
		}
	}
}

// Find is the patterns of group g.
func (f *PatternFinder) Find(g int) Patterns {
	if f.rows == nil || f.rows[g] == nil {
		return Patterns{}
	}
	cells := f.cells(g, func(r *profile.Row) bool { return r.Level == profile.DRAM && !f.serial(r) })
	x := newFinder(f.p, &f.groups[g], f.shapes)
	x.loops(cells)
	if hot := x.inCaches(f.p, f.rows[g]); len(hot) > 0 {
		x.look(f.cells(g, func(r *profile.Row) bool { return hot[int(r.Region)] }))
	}
	return x.finish(cells)
}

// cells are the rows of group g that keep wants.
func (f *PatternFinder) cells(g int, keep func(*profile.Row) bool) (list []regionCell) {
	for _, i := range f.rows[g] {
		if r := &f.p.Rows[i]; keep(r) {
			list = append(list, cellOf(f.p, r))
		}
	}
	return list
}

// regionCell is a cell of one region; Page counts within the object still.
type regionCell struct {
	region, object int
	pattern.Cell
}

func cellOf(p *profile.Profile, r *profile.Row) regionCell {
	x := &p.Pages[r.Page]
	return regionCell{int(r.Region), x.Object, pattern.Cell{Page: x.Index, Node: int(p.Threads[r.Thread].Node), Count: r.Count}}
}

// finder finds the patterns of one group.
type finder struct {
	*layout
	use     pattern.Use // without cells
	strides []int64
	found   Patterns
}

func newFinder(p *profile.Profile, group *access.Group, shapes map[int]shape.Shape) *finder {
	l := layOut(p, group.Objects)
	f := &finder{layout: l, strides: l.strides}
	f.use = pattern.Use{Nodes: len(p.Run.Topology.Nodes), Head: l.head, Bytes: l.bytes, Period: p.Run.Period}
	s := shapes[group.Objects[0]]
	if f.found.Doubt = s.Doubt; len(s.Dims) > 0 {
		f.found.Shape = &s
		f.strides = append(f.strides, s.Strides()...)
	}
	return f
}

// find is the pattern of cells.
func (f *finder) find(cells []regionCell) pattern.Result {
	f.use.Cells = f.place(cells)
	return pattern.Find(f.use, f.strides)
}

// perMiss is the accesses at all levels to each DRAM access from which on a loop runs in
// the caches: more than one to each byte of a line. What it misses is then what the
// caches have lost by chance, or other nodes have written.
const perMiss = 64

// inCaches is the loops that run in the caches; rows are those of the group.
func (f *finder) inCaches(p *profile.Profile, rows []int32) map[int]bool {
	left := make(map[int]uint64) // of perMiss accesses to each miss, by region
	for _, l := range f.found.Loops {
		left[l.Region] = perMiss * l.Accesses
	}
	hot := make(map[int]bool)
	for _, i := range rows {
		r := &p.Rows[i]
		if n := left[int(r.Region)]; n > 0 {
			left[int(r.Region)] = n - min(n, r.Count)
			if n <= r.Count {
				hot[int(r.Region)] = true
			}
		}
	}
	return hot
}

// look names the loops anew that run in the caches, by cells of all levels: each node of
// a gather misses the parts of the others, its own it has just written.
func (f *finder) look(cells []regionCell) {
	byRegion := make(map[int][]regionCell)
	for _, c := range cells {
		byRegion[c.region] = append(byRegion[c.region], c)
	}
	for i := range f.found.Loops {
		l := &f.found.Loops[i]
		if cells := byRegion[l.Region]; len(cells) > 0 {
			if r := f.find(cells); r.Kind != pattern.None && r.Kind != pattern.NotEnough {
				l.Result = r
			}
		}
	}
}

// finish adds what follows from the loops' patterns. cells are the DRAM accesses.
func (f *finder) finish(cells []regionCell) Patterns {
	x := &f.found
	if len(f.strides) == 0 {
		x.infer(f.bytes)
	}
	var wants []pattern.Want
	for _, loop := range x.Loops {
		wants = append(wants, loop.Want)
	}
	x.Conflict = pattern.FindConflict(wants, f.use.Nodes, f.use.Head, f.use.Bytes)
	if x.Is() {
		x.Together = f.find(cells)
	}
	return *x
}

// loops finds the pattern of each region that matters to the group.
func (f *finder) loops(cells []regionCell) {
	slices.SortStableFunc(cells, func(a, b regionCell) int { return cmp.Compare(a.region, b.region) })
	var all uint64
	for _, c := range cells {
		all += c.Count
	}
	var list []LoopPattern
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].region == cells[0].region {
			n++
		}
		x := LoopPattern{Region: cells[0].region}
		placed := f.place(cells[:n])
		x.First, x.Last = placed[0].Page, placed[0].Page
		for _, c := range placed {
			x.Accesses += c.Count
			x.First, x.Last = min(x.First, c.Page), max(x.Last, c.Page)
		}
		if float64(x.Accesses) >= patternLoop*float64(all) {
			x.Result = f.find(cells[:n])
			list = append(list, x)
		}
		cells = cells[n:]
	}
	slices.SortStableFunc(list, func(a, b LoopPattern) int { return cmp.Compare(b.Accesses, a.Accesses) })
	f.found.Loops = list
}

// infer takes the periods of the loops for rows, the heaviest loop's first.
func (x *Patterns) infer(bytes int64) {
	var periods []int64
	for _, l := range x.Loops {
		if l.Period > 0 {
			periods = append(periods, l.Period)
		}
	}
	s, ok := shape.Infer(bytes, periods)
	if !ok {
		return
	}
	x.Shape = &s
	for i := range x.Loops {
		x.Loops[i].Rename(bytes, s.Strides())
	}
}

// layout is the instances of a group as one object.
type layout struct {
	base    map[int]int // first page of each instance
	head    int
	bytes   int64
	strides []int64 // the instances' distance, where they are alike
}

func layOut(p *profile.Profile, objects []int) *layout {
	order := slices.Clone(objects)
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &p.Objects[a], &p.Objects[b]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	l := &layout{base: make(map[int]int)}
	pages := func(o *profile.Object) int { return units.Bytes(o.Bytes + int64(o.Head)).Pages() }
	end, begin, alike := 0, 0, true
	var last *profile.Object
	for _, i := range order {
		o := &p.Objects[i]
		switch {
		case last == nil:
		case o.Overlaps || o.Rank != last.Rank:
			begin = end
			alike = alike && pages(o) == pages(last)
		}
		l.base[i] = begin
		end = max(end, begin+pages(o))
		last = o
	}
	first := &p.Objects[order[0]]
	if begin == 0 {
		l.head = first.Head
		for _, i := range order {
			l.bytes = max(l.bytes, p.Objects[i].Bytes)
		}
		return l
	}
	l.bytes = int64(end) * units.PageSize
	if alike {
		l.strides = []int64{int64(pages(first)) * units.PageSize}
	}
	return l
}

// place is the cells with their pages in the layout.
func (l *layout) place(cells []regionCell) []pattern.Cell {
	list := make([]pattern.Cell, len(cells))
	for i, c := range cells {
		list[i] = c.Cell
		list[i].Page += l.base[c.object]
	}
	return list
}
