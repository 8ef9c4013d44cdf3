// Package heat answers who uses which part of an object: accesses by page and
// thread, or by page and node, summed to tiles that a screen or a sheet of paper
// has room for.
//
// # Input
//
// A profile, perhaps restricted by access.Only, and groups of its objects.
//
// # Output
//
// A Map for each group: plain data, from which Coarser makes further levels of zoom.
//
// # Method
//
// One pass over the rows, whatever the number of groups. The objects of a group
// lie one after the other as access.Group.Bytes counts them: an allocation that
// does not overlap an earlier one of its thread is the same buffer again and lies
// over it. A tile is a run of pages, a column one thread or neighbours of a node.
//
// # Limits
//
// A tile shows the sum of its pages: what alternates from page to page looks
// uniformly shared in a tile of many. Zoom in, or read the page classes.
package heat

import (
	"cmp"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Axis is what the columns of a map are.
type Axis int

// The axes.
const (
	Threads Axis = iota // by node, then by rank
	Nodes
)

// Options are the size of maps.
type Options struct {
	Axis Axis
	// MaxTiles bounds the tiles of a map: more than a screen has lines are of use for
	// zoom alone.
	MaxTiles int
	// MaxColumns bounds the columns by merging neighbours of a node; there is always
	// one for each node with threads.
	MaxColumns int
}

// DefaultOptions fill a screen and leave four steps of zoom.
func DefaultOptions() Options { return Options{MaxTiles: 1024, MaxColumns: 64} }

// Column is one thread, or several of one node.
type Column struct {
	Node  topo.NodeID
	Ranks []int // ascending
}

// Map is the heat of one group of objects.
type Map struct {
	Group   int // index in the groups
	Pages   int // of all of its memory, touched or not
	Tile    int // pages a tile, a power of two; the last tile may have fewer
	Nodes   int
	Columns []Column
	// DRAM and All are accesses: [tile*len(Columns)+column].
	DRAM, All []uint64
	// Homes is pages: [tile*(Nodes+1)+node], the last for those whose home is not
	// known. Untouched pages have none.
	Homes []int
}

// Tiles is the number of tiles.
func (m *Map) Tiles() int { return (m.Pages + m.Tile - 1) / m.Tile }

// Of maps the groups of shown, indices in groups, in that order.
func Of(p *profile.Profile, groups []access.Group, shown []int, opt Options) []Map {
	columns, of := columnsOf(p, opt)
	base, maps := layout(p, groups, shown)
	for i := range maps {
		m := &maps[i]
		m.Nodes, m.Columns = len(p.Run.Topology.Nodes), columns
		m.Tile = tile(m.Pages, opt.MaxTiles)
		m.DRAM = make([]uint64, m.Tiles()*len(columns))
		m.All = make([]uint64, m.Tiles()*len(columns))
		m.Homes = make([]int, m.Tiles()*(m.Nodes+1))
	}
	at := places(p, base, maps)
	for i := range p.Rows {
		r := &p.Rows[i]
		pl := at[r.Page]
		if pl.of < 0 {
			continue
		}
		m, cell := &maps[pl.of], int(pl.tile)*len(columns)+of[r.Thread]
		m.All[cell] += r.Count
		if r.Level == profile.DRAM {
			m.DRAM[cell] += r.Count
		}
	}
	return maps
}

// tile is the smallest power of two of which at most most cover pages.
func tile(pages, most int) int {
	t := 1
	for (pages+t-1)/t > max(1, most) {
		t *= 2
	}
	return t
}

// columnsOf returns the columns, and for each thread of p the index of its own.
func columnsOf(p *profile.Profile, opt Options) (columns []Column, of []int) {
	order := make([]int, len(p.Threads))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &p.Threads[a], &p.Threads[b]
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.CPU, y.CPU))
	})
	most := ranksAColumn(p, opt)
	of = make([]int, len(p.Threads))
	for _, t := range order {
		x := &p.Threads[t]
		c := len(columns) - 1
		seen := c >= 0 && columns[c].Node == x.Node && slices.Contains(columns[c].Ranks, x.Rank)
		if !seen && (c < 0 || columns[c].Node != x.Node || len(columns[c].Ranks) == most) {
			columns = append(columns, Column{Node: x.Node})
			c++
		}
		if !seen {
			columns[c].Ranks = append(columns[c].Ranks, x.Rank)
		}
		of[t] = c
	}
	return columns, of
}

// ranksAColumn is how many ranks of a node share a column.
func ranksAColumn(p *profile.Profile, opt Options) int {
	type pair struct {
		node topo.NodeID
		rank int
	}
	seen := make(map[pair]bool)
	ranks := make(map[topo.NodeID]int)
	for _, t := range p.Threads {
		if k := (pair{t.Node, t.Rank}); !seen[k] {
			seen[k] = true
			ranks[t.Node]++
		}
	}
	if opt.Axis == Nodes {
		return len(seen)
	}
	for each := 1; ; each++ {
		columns := 0
		for _, n := range ranks {
			columns += (n + each - 1) / each
		}
		if columns <= max(opt.MaxColumns, len(ranks)) {
			return each
		}
	}
}

// extent is the pages [first, end) of an object that a map has room for.
type extent struct{ first, end int }

// extents is that of each object of p: all of it, where somebody asked for a size,
// else what was touched, as of stacks and program images.
func extents(p *profile.Profile) []extent {
	list := make([]extent, len(p.Objects))
	for i := range p.Pages {
		g := &p.Pages[i]
		e := &list[g.Object]
		if e.end == 0 {
			e.first = g.Index
		}
		e.first, e.end = min(e.first, g.Index), max(e.end, g.Index+1)
	}
	for i := range list {
		if o := &p.Objects[i]; sized(o.Kind) {
			list[i] = extent{0, max(list[i].end, (units.Bytes(o.Head) + units.Bytes(o.Bytes)).Pages())}
		}
	}
	return list
}

func sized(k profile.Kind) bool {
	return k == profile.Heap || k == profile.Global || k == profile.Mapping
}

// layout gives each object of the groups shown its place in the map of its group:
// page Index is the map's page base+Index.
func layout(p *profile.Profile, groups []access.Group, shown []int) (base []place, maps []Map) {
	base = make([]place, len(p.Objects))
	for i := range base {
		base[i] = place{of: -1}
	}
	size := extents(p)
	maps = make([]Map, len(shown))
	for i, g := range shown {
		maps[i].Group = g
		maps[i].Pages = arrange(p, groups[g].Objects, size, func(object, first int) {
			base[object] = place{int32(i), int64(first - size[object].first)}
		})
	}
	return base, maps
}

// place is where something is: in which map, and at which page or tile.
type place struct {
	of   int32 // -1 is in none
	tile int64
}

// arrange puts objects one after the other, but for buffers that are allocated
// again, and returns how many pages they take.
func arrange(p *profile.Profile, objects []int, size []extent, put func(object, first int)) int {
	order := slices.Clone(objects)
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &p.Objects[a], &p.Objects[b]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	start, next, end := 0, 0, 0 // of the rank, of the object, of all
	for i, o := range order {
		x := &p.Objects[o]
		again := (x.Kind == profile.Heap || x.Kind == profile.Mapping) && !x.Overlaps
		switch {
		case i > 0 && p.Objects[order[i-1]].Rank != x.Rank:
			start, next = end, end
		case again:
			next = start
		}
		put(o, next)
		next += size[o].end - size[o].first
		end = max(end, next)
	}
	return end
}

// places is the tile of each page of p, and counts the homes on the way.
func places(p *profile.Profile, base []place, maps []Map) []place {
	at := make([]place, len(p.Pages))
	life := access.Lives(p)
	for i := range p.Pages {
		g := &p.Pages[i]
		if at[i] = base[g.Object]; at[i].of < 0 {
			continue
		}
		m := &maps[at[i].of]
		at[i].tile = (at[i].tile + int64(g.Index)) / int64(m.Tile)
		if life[i] != i {
			continue
		}
		home := m.Nodes
		if g.Home != topo.Unknown {
			home = int(g.Home)
		}
		m.Homes[int(at[i].tile)*(m.Nodes+1)+home]++
	}
	return at
}

// Coarser is m in at most tiles tiles, by merging neighbours; m itself where it has no
// more.
func (m *Map) Coarser(tiles int) *Map {
	step := tile(m.Tiles(), tiles)
	if step == 1 {
		return m
	}
	out := *m
	out.Tile = m.Tile * step
	out.DRAM = merge(m.DRAM, len(m.Columns), step)
	out.All = merge(m.All, len(m.Columns), step)
	out.Homes = merge(m.Homes, m.Nodes+1, step)
	return &out
}

// merge adds up step rows of a matrix of width columns to one each.
func merge[N int | uint64](matrix []N, width, step int) []N {
	out := make([]N, 0, len(matrix)/step+width)
	for i := 0; i*width < len(matrix); i++ {
		if i%step == 0 {
			out = append(out, make([]N, width)...)
		}
		for j := range width {
			out[len(out)-width+j] += matrix[i*width+j]
		}
	}
	return out
}
