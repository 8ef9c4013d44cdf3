package classify

import (
	"cmp"
	"slices"

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
	list := make([]Patterns, len(groups))
	if len(p.Run.Topology.Nodes) < 2 {
		return list
	}
	cells := loopCells(p, groups, of)
	finders := make([]*finder, len(groups))
	for g := range groups {
		if len(cells[g]) > 0 {
			finders[g] = newFinder(p, &groups[g], shapes)
			finders[g].loops(cells[g])
		}
	}
	for g, regions := range inCaches(p, of, finders) {
		finders[g].look(regions)
	}
	for g, f := range finders {
		if f != nil {
			list[g] = f.finish(cells[g])
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

// loopCells collects the rows that matter, by group.
func loopCells(p *profile.Profile, groups []access.Group, of []int) [][]regionCell {
	serial := access.SerialCode(p)
	counts := func(r *profile.Row) bool {
		g := of[p.Pages[r.Page].Object]
		return r.Level == profile.DRAM && Placeable(groups[g].Kind) && !serial(r)
	}
	sums, all := make([]uint64, len(groups)), uint64(0)
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Level == profile.DRAM {
			all += r.Count
			if counts(r) {
				sums[of[p.Pages[r.Page].Object]] += r.Count
			}
		}
	}
	cells := make([][]regionCell, len(groups))
	for i := range p.Rows {
		r := &p.Rows[i]
		g := of[p.Pages[r.Page].Object]
		if float64(sums[g]) >= patternGroup*float64(all) && counts(r) {
			cells[g] = append(cells[g], cellOf(p, r))
		}
	}
	return cells
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

// inCaches collects what the loops that run in the caches access at all levels, by
// group and region.
func inCaches(p *profile.Profile, of []int, finders []*finder) map[int]map[int][]regionCell {
	left := make([]map[int]uint64, len(finders)) // of perMiss accesses to each miss, by region
	for g, f := range finders {
		if f == nil {
			continue
		}
		left[g] = make(map[int]uint64)
		for _, l := range f.found.Loops {
			left[g][l.Region] = perMiss * l.Accesses
		}
	}
	all := make(map[int]map[int][]regionCell)
	for i := range p.Rows {
		r := &p.Rows[i]
		g := of[p.Pages[r.Page].Object]
		if n := left[g][int(r.Region)]; n > 0 {
			left[g][int(r.Region)] = n - min(n, r.Count)
			if n <= r.Count {
				if all[g] == nil {
					all[g] = make(map[int][]regionCell)
				}
				all[g][int(r.Region)] = nil
			}
		}
	}
	for i := range p.Rows {
		r := &p.Rows[i]
		regions := all[of[p.Pages[r.Page].Object]]
		if cells, ok := regions[int(r.Region)]; ok {
			regions[int(r.Region)] = append(cells, cellOf(p, r))
		}
	}
	return all
}

// look names the loops anew that run in the caches, by their accesses at all levels, by
// region: each node of a gather misses the parts of the others, its own it has just
// written.
func (f *finder) look(regions map[int][]regionCell) {
	for i := range f.found.Loops {
		l := &f.found.Loops[i]
		if cells, ok := regions[l.Region]; ok {
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
