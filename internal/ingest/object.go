package ingest

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// global is a symbol of at least a page, at addresses of the process.
type global struct {
	lo, hi uint64
	module int // arena module
	symbol symbol.Variable
	object int // index in Objects, -1 is not yet
}

// owners finds the objects of pages.
type owners struct {
	b       *builder
	globals []global // by address
	byID    map[int]int
	images  map[int]int    // profile module → object
	small   map[uint64]int // page → arena site
	smalls  map[int]int    // arena site → object
	smallN  map[int]map[uint64]int
	unknown int
}

func (b *builder) newOwners() (*owners, error) {
	o := &owners{b: b, byID: map[int]int{}, images: map[int]int{}, small: map[uint64]int{}, smalls: map[int]int{},
		smallN: map[int]map[uint64]int{}, unknown: -1}
	err := b.a.EachSmall(func(v arena.SmallVote) { o.small[v.Page] = v.Site })
	for i, m := range b.modules {
		for _, v := range b.table.Globals(m.Path) {
			o.globals = append(o.globals, global{m.Base + v.VAddr, m.Base + v.VAddr + v.Size, i, v, -1})
		}
	}
	sort.SliceStable(o.globals, func(i, j int) bool { return o.globals[i].lo < o.globals[j].lo })
	return o, err
}

// objects makes the pages and the objects that have any.
func (b *builder) objects() error {
	o, err := b.newOwners()
	if err != nil {
		return err
	}
	b.owners = o
	b.pageI = make([]int, b.a.NumPages())
	for i := range b.pageI {
		b.pageI[i] = -1
	}
	seen := make(map[uint64]int32, b.a.NumPages()) // by pageKey
	placed := map[objectPage]bool{}
	err = b.a.EachPage(func(i int, r arena.Page) {
		if r.Number == 0 || r.Thread >= len(b.p.Threads) || r.Thread < -1 || r.Home >= len(b.p.Run.Topology.Nodes) || r.Home < -1 {
			return
		}
		object, index := o.find(r)
		if index < 0 {
			return
		}
		if r.Placed {
			placed[objectPage{object, index}] = true
		}
		home := topo.NodeID(r.Home)
		key := pageKey(object, index, home)
		if k, ok := seen[key]; ok {
			b.pageI[i] = int(k)
			return
		}
		k := len(b.p.Pages)
		seen[key], b.pageI[i] = int32(k), k
		page := profile.Page{Object: object, Index: index, Home: home, Thread: -1, Region: -1, Place: -1}
		if r.Thread >= 0 {
			page.Thread, page.Region, page.Serial = r.Thread, b.region(r.Region), r.Serial
			if page.Place = b.place(arena.Code{VAddr: r.PC, Module: r.Module}); page.Place < 0 && r.Kernel {
				page.Place = b.kernelPlace(r.Region)
			}
		}
		b.p.Pages = append(b.p.Pages, page)
	})
	b.placed(placed)
	return err
}

// pageKey is a page of an object on a home in one number: of 2^24 objects, 2^32 pages
// and 255 nodes.
func pageKey(object, index int, home topo.NodeID) uint64 {
	return uint64(object)<<40 | uint64(uint32(index))<<8 | uint64(uint8(home))
}

// objectPage is a page of an object, on whatever homes.
type objectPage struct{ object, index int }

// placed marks the objects that the program places itself; pages are those that it has
// placed at some time.
func (b *builder) placed(pages map[objectPage]bool) {
	own, all := map[int]int{}, map[int]int{}
	for p := range pages {
		own[p.object]++
	}
	seen := map[objectPage]bool{}
	for i := range b.p.Pages {
		g := &b.p.Pages[i]
		if at := (objectPage{g.Object, g.Index}); own[g.Object] > 0 && !seen[at] {
			seen[at] = true
			all[g.Object]++
		}
	}
	for object, n := range own {
		b.p.Objects[object].Placed = 2*n >= all[object]
	}
}

// find returns the object of a page record, made if it is new, and the page's
// number in it.
func (o *owners) find(r arena.Page) (object, index int) {
	if r.Object > 0 && r.Object < len(o.b.objs) {
		a := o.b.objs[r.Object]
		return o.allocated(r.Object, a), int(r.Number) - int(a.Addr/units.PageSize)
	}
	addr := r.Number * units.PageSize
	if g := o.globalAt(addr); g != nil {
		return o.global(g), int(r.Number) - int(g.lo/units.PageSize)
	}
	if at := o.b.at(addr); at.Module >= 0 {
		return o.image(at.Module), int(r.Number) - int(o.b.modules[at.Module].Lo/units.PageSize)
	}
	if site, ok := o.small[r.Number]; ok && site > 0 && site < len(o.b.sites) {
		return o.ofSmall(site, r.Number)
	}
	if o.unknown < 0 {
		o.unknown = o.add(profile.Object{Kind: profile.Unknown, Name: "memory that nobody asked numaopt for", Site: -1, Module: -1})
	}
	return o.unknown, int(r.Number)
}

func (o *owners) add(x profile.Object) int {
	o.b.p.Objects = append(o.b.p.Objects, x)
	return len(o.b.p.Objects) - 1
}

// allocated is the object of an allocation, a mapping or a stack.
func (o *owners) allocated(id int, a arena.Object) int {
	if i, ok := o.byID[id]; ok {
		return i
	}
	x := profile.Object{Kind: profile.Heap, Name: a.Name, Site: -1, Rank: a.Rank, Ordinal: a.Ordinal, Overlaps: a.Overlaps, Module: -1,
		Bytes: int64(a.Bytes), Head: int(a.Addr % units.PageSize)}
	switch a.Kind {
	case arena.KindMapping:
		x.Kind, x.Site, x.FileBacked = profile.Mapping, o.b.site(a.Site), a.File
	case arena.KindStack:
		x.Kind, x.Ordinal, x.Name = profile.Stack, 0, fmt.Sprintf("stack of thread %d", a.Rank)
	default:
		x.Site = o.b.site(a.Site)
	}
	o.byID[id] = o.add(x)
	return o.byID[id]
}

// globalAt is the symbol of at least a page that covers most of a page, or nil:
// it covers half of the page or more.
func (o *owners) globalAt(addr uint64) *global {
	end := addr + units.PageSize
	var best *global
	most := uint64(units.PageSize/2 - 1)
	last := sort.Search(len(o.globals), func(i int) bool { return o.globals[i].lo >= end })
	// Symbols may lie in one another (COMMON blocks, aliases), but not deeply.
	for i := last - 1; i >= 0 && i >= last-16; i-- {
		g := &o.globals[i]
		if g.hi <= addr || o.b.modules[g.module].Dead {
			continue
		}
		if n := min(end, g.hi) - max(addr, g.lo); n > most {
			best, most = g, n
		}
	}
	return best
}

func (o *owners) global(g *global) int {
	if g.object < 0 {
		s := g.symbol
		g.object = o.add(profile.Object{Kind: profile.Global, Name: s.Name, Site: -1, Module: o.b.module(g.module), Symbol: s.Symbol,
			File: s.File, Line: s.Line, Offset: s.VAddr, Bytes: int64(s.Size), Head: int(g.lo % units.PageSize)})
	}
	return g.object
}

func (o *owners) image(module int) int {
	m := o.b.module(module)
	if i, ok := o.images[m]; ok {
		return i
	}
	a := o.b.modules[module]
	o.images[m] = o.add(profile.Object{Kind: profile.Image, Name: imageName(o.b.p.Modules[m]), Site: -1, Module: m, Bytes: int64(a.Hi - a.Lo)})
	return o.images[m]
}

// ofSite is the object of all small allocations of a site.
func (o *owners) ofSite(site int) int {
	i, ok := o.smalls[site]
	if !ok {
		i = o.add(profile.Object{Kind: profile.Small, Site: o.b.site(site), Module: -1})
		o.smalls[site] = i
		o.smallN[site] = map[uint64]int{}
	}
	return i
}

// ofSmall is the object of a page of small allocations of a site; its pages are
// numbered as they come.
func (o *owners) ofSmall(site int, page uint64) (object, index int) {
	i := o.ofSite(site)
	n, ok := o.smallN[site][page]
	if !ok {
		n = len(o.smallN[site])
		o.smallN[site][page] = n
		o.b.p.Objects[i].Bytes += units.PageSize
	}
	return i, n
}

// rows makes the table: a row for each level and operation of each block, sorted, and
// those of one cell added up.
func (b *builder) rows() error {
	rows := make([]profile.Row, 0, b.a.NumBlocks())
	err := b.a.EachBlock(func(k *arena.Block) {
		if k.Page <= 0 || k.Page >= len(b.pageI) || b.pageI[k.Page] < 0 || k.Thread >= len(b.p.Threads) {
			return
		}
		region := b.region(k.Region)
		r := profile.Row{Page: int32(b.pageI[k.Page]), Thread: int32(k.Thread), Region: int32(region)}
		r.First, r.Last = parts(b.p.Regions[region].Sweep, k.First, k.Last)
		for level := range k.Count {
			for op, n := range k.Count[level] {
				if n > 0 {
					r.Level, r.Op, r.Count, r.Latency = profile.Level(level), profile.Op(op), n, k.Latency[level][op]
					rows = append(rows, r)
				}
			}
		}
	})
	if err != nil {
		return err
	}
	b.p.Rows = merge(byPage(rows, len(b.p.Pages)))
	return nil
}

// byPage is rows in the order of their pages.
func byPage(rows []profile.Row, pages int) []profile.Row {
	if slices.IsSortedFunc(rows, func(x, y profile.Row) int { return cmp.Compare(x.Page, y.Page) }) {
		return rows
	}
	at := make([]int, pages+1)
	for i := range rows {
		at[rows[i].Page+1]++
	}
	for i := range pages {
		at[i+1] += at[i]
	}
	out := make([]profile.Row, len(rows))
	for i := range rows {
		n := &at[rows[i].Page]
		out[*n] = rows[i]
		*n++
	}
	return out
}

// merge sorts the rows of each page and adds up those of one cell: rows are in the order
// of pages, and each processor takes a run of them. It works in rows.
func merge(rows []profile.Row) []profile.Row {
	runs := make([][]profile.Row, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	rest := rows
	for i := range runs {
		n := wholePages(rest, len(rest)/(len(runs)-i))
		run := rest[:n]
		rest = rest[n:]
		wait.Go(func() { runs[i] = mergeRun(run) })
	}
	wait.Wait()
	merged := rows[:0]
	for _, run := range runs {
		merged = append(merged, run...)
	}
	return merged
}

// wholePages is the first number from n on of rows that are of whole pages.
func wholePages(rows []profile.Row, n int) int {
	for n > 0 && n < len(rows) && rows[n].Page == rows[n-1].Page {
		n++
	}
	return n
}

// mergeRun is merge, of rows of whole pages.
func mergeRun(rows []profile.Row) []profile.Row {
	merged := rows[:0]
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && rows[end].Page == rows[i].Page {
			end++
		}
		slices.SortFunc(rows[i:end], func(x, y profile.Row) int {
			return cmp.Or(cmp.Compare(x.Thread, y.Thread), cmp.Compare(x.Region, y.Region), cmp.Compare(x.Level, y.Level), cmp.Compare(x.Op, y.Op))
		})
		for i < end {
			next := sameCell(rows[i:end])
			merged = appendCell(merged, rows[i:i+next])
			i += next
		}
	}
	return merged
}

// sameCell is how many rows from the first on are of its page, thread and region.
func sameCell(rows []profile.Row) int {
	n := 1
	for n < len(rows) && rows[n].Thread == rows[0].Thread && rows[n].Region == rows[0].Region {
		n++
	}
	return n
}

// appendCell appends the rows of one cell, those of one level and operation added up.
// All have the same parts of the sweep.
func appendCell(merged, cell []profile.Row) []profile.Row {
	first, last := cell[0].First, cell[0].Last
	for i := range cell {
		first, last = widened(first, last, &cell[i])
	}
	if first > last { // in no block is it known
		first, last = 0, profile.SweepParts-1
	}
	start := len(merged)
	for i := range cell {
		r := cell[i]
		r.First, r.Last = first, last
		if n := len(merged); n > start && merged[n-1].Level == r.Level && merged[n-1].Op == r.Op {
			merged[n-1].Count += r.Count
			merged[n-1].Latency += r.Latency
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// widened is the parts of a sweep from first to last and those of r together; what is
// not known of one is left to the other.
func widened(first, last uint8, r *profile.Row) (uint8, uint8) {
	switch {
	case first > last:
		return r.First, r.Last
	case r.First > r.Last:
		return first, last
	}
	return min(first, r.First), max(last, r.Last)
}

// parts is which parts of a sweep the instances from first to last are, see
// profile.Row; from > to where that is not known.
func parts(sweep, first, last uint64) (from, to uint8) {
	switch {
	case sweep < 2:
		return 0, 0
	case first > last:
		return 1, 0
	case last >= sweep:
		return 0, profile.SweepParts - 1
	}
	return uint8(first * profile.SweepParts / sweep), uint8(last * profile.SweepParts / sweep)
}

// finish names what is named by its site.
func (b *builder) finish() {
	names := siteNames(b.p.Sites, b.p.Modules)
	for i := range b.p.Objects {
		x := &b.p.Objects[i]
		switch {
		case x.Name != "":
		case x.Site < 0:
			x.Name = "unknown site"
		case x.Kind == profile.Small:
			x.Name = "small objects of " + names[x.Site]
		default:
			x.Name = names[x.Site]
		}
	}
}
