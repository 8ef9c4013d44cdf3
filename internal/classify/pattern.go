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
// accesses of parallel code; no loops for what no plan places, and on one node.
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
	for g := range groups {
		if len(cells[g]) > 0 {
			list[g] = findPatterns(p, &groups[g], cells[g], shapes)
		}
	}
	return list
}

// regionCell is a cell of one region; Page counts within the object still.
type regionCell struct {
	region, object int
	pattern.Cell
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
			x := &p.Pages[r.Page]
			cells[g] = append(cells[g], regionCell{r.Region, x.Object, pattern.Cell{Page: x.Index, Node: int(p.Threads[r.Thread].Node), Count: r.Count}})
		}
	}
	return cells
}

func findPatterns(p *profile.Profile, group *access.Group, cells []regionCell, shapes map[int]shape.Shape) Patterns {
	l := layOut(p, group.Objects)
	use := pattern.Use{Nodes: len(p.Run.Topology.Nodes), Head: l.head, Bytes: l.bytes, Period: p.Run.Period}
	x := Patterns{}
	strides := l.strides
	s := shapes[group.Objects[0]]
	if x.Doubt = s.Doubt; len(s.Dims) > 0 {
		x.Shape = &s
		strides = append(strides, s.Strides()...)
	}
	x.Loops = loopPatterns(use, l, cells, strides)
	if len(strides) == 0 {
		x.infer(l.bytes)
	}
	var wants []pattern.Want
	for _, loop := range x.Loops {
		wants = append(wants, loop.Want)
	}
	x.Conflict = pattern.FindConflict(wants, use.Nodes, use.Head, use.Bytes)
	if x.Is() {
		use.Cells = l.place(cells)
		x.Together = pattern.Find(use, strides)
	}
	return x
}

// loopPatterns finds the pattern of each region that matters to the group.
func loopPatterns(use pattern.Use, l *layout, cells []regionCell, strides []int64) []LoopPattern {
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
		use.Cells = l.place(cells[:n])
		x.First, x.Last = use.Cells[0].Page, use.Cells[0].Page
		for _, c := range use.Cells {
			x.Accesses += c.Count
			x.First, x.Last = min(x.First, c.Page), max(x.Last, c.Page)
		}
		if float64(x.Accesses) >= patternLoop*float64(all) {
			x.Result = pattern.Find(use, strides)
			list = append(list, x)
		}
		cells = cells[n:]
	}
	slices.SortStableFunc(list, func(a, b LoopPattern) int { return cmp.Compare(b.Accesses, a.Accesses) })
	return list
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
