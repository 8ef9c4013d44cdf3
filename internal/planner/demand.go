package planner

import (
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/classify"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// demand is the profile's table as the planner sees it: who wants which page.
type demand struct {
	p   *profile.Profile
	opt Options
	n   int    // nodes
	in  []bool // regions of Options.Only; nil is all
	// table is the one in force: to choose by, then to predict by, see count.
	*table
	// expected divides all that is chance among the nodes; same counts what is
	// only guessed to be chance as if the same threads did the same work in each run;
	// chosen is what places and schedules are chosen by, see choice. Without chance
	// they are one.
	expected, same, chosen *table
	// flows is the accesses that move with the chunks of loops, see schedule.go.
	flows []flow
	// wide is all accesses that leave a core's own caches but those of flows.
	wide     []uint64
	loops    *loops
	ofThread []bool // by object, see ownObjects
	// schedules is by group of loops; nil is static everywhere.
	schedules []schedule
	verdict   []string // by group of loops: why its schedule is what it is
	// otherwise is the places of the best plan without schedules; nil where that is it.
	otherwise map[unitName]plan.Distribution
	// home is where each page is if it is left to first touch; -1 is not known.
	home []int
	// whole and far are the accesses to each page as profiled, and the remote ones.
	whole, far []uint64
	// serial is the part of use that the main thread makes outside loops.
	serial    []uint64
	allLevels bool
	few       string // what to say of pages that have too few samples
	// byObject lists the pages of each object, ascending by index.
	byObject  [][]int
	stacks    [][]plan.Frame // by site, as a plan names it
	canHold   []bool         // node has memory
	distances *distances     // nil: all remote nodes are equally far
	known     uint64         // accesses to pages with a known home
	unit      int            // pages that get one node
	// grain is how many units all of these count for one access: 1, or more where
	// accesses are divided among nodes.
	grain  uint64
	chance *classify.Chance
	// dealt is the accesses that are chance, by region, and luck by evidence and
	// page.
	dealt []uint64
	luck  [classify.Different + 1][]uint64
	// tossed is the pages that handed-out work touches first, see dynamic.go: how much
	// of that work each node does.
	tossed map[int][]uint64
	// dealtFirst is by page whether handed-out work touched it first, hands how much of
	// such work each node does, by part.
	dealtFirst []bool
	hands      map[classify.Part][]uint64
}

// table is accesses by page of the profile.
type table struct {
	// use[page*n+node] is the accesses that count, with the loops' schedules as they
	// are; base is the part of use that no schedule moves.
	use, base []uint64
	// stay[page] is the accesses that are local where the page is left to first
	// touch: homeUse and, for what is chance, drift, see dynamic.go.
	stay  []uint64
	drift []int64
	// weighed is true where use and stay count accesses by what they cost, see
	// distances; all is then by page what use was before.
	weighed bool
	all     []uint64
}

// total is the accesses to page i of n nodes.
func (t *table) total(i, n int) uint64 {
	if t.weighed {
		return t.all[i]
	}
	return sum(t.use[i*n : (i+1)*n])
}

// newTable is a table without accesses; arrange makes its use and stay.
func (d *demand) newTable() *table {
	return &table{base: make([]uint64, d.n*len(d.p.Pages)), drift: make([]int64, len(d.p.Pages))}
}

// tables is d's tables, each once.
func (d *demand) tables() []*table {
	list := []*table{d.expected}
	for _, t := range []*table{d.same, d.chosen} {
		if t != nil && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

func newDemand(p *profile.Profile, opt Options) (*demand, error) {
	in, err := regions(p, opt.Only)
	if err != nil {
		return nil, err
	}
	d := &demand{p: p, opt: opt, n: len(p.Run.Topology.Nodes), in: in, byObject: make([][]int, len(p.Objects))}
	for _, node := range p.Run.Topology.Nodes {
		d.canHold = append(d.canHold, !node.NoMemory)
	}
	d.unit = max(1, opt.PageSize.Pages())
	d.distances = newDistances(p, opt)
	for i := range p.Sites {
		d.stacks = append(d.stacks, d.stack(i))
	}
	d.ofThread = ownObjects(p)
	d.count(in, false)
	if d.known < d.opt.MinDRAM*d.grain*max(1, p.Run.Period) {
		d.count(in, true)
	}
	d.table = d.expected
	d.arrange(nil)
	d.choice()
	d.whole, d.far = make([]uint64, len(p.Pages)), make([]uint64, len(p.Pages))
	for i, h := range d.home {
		if all := sum(d.of(d.expected.use, i)); h >= 0 {
			d.whole[i], d.far[i] = all, all-min(all, d.expected.stay[i])
		}
	}
	d.opt.RunCost *= d.grain
	d.opt.PlaceCost *= d.grain
	for i := range p.Pages {
		o := p.Pages[i].Object
		d.byObject[o] = append(d.byObject[o], i)
	}
	for _, pages := range d.byObject {
		slices.SortStableFunc(pages, func(a, b int) int { return p.Pages[a].Index - p.Pages[b].Index })
	}
	return d, nil
}

// count fills the tables, flows and known from the rows of the regions in; nil is
// all.
func (d *demand) count(in []bool, allLevels bool) {
	d.allLevels = allLevels
	d.wide, d.serial, d.known = make([]uint64, d.n*len(d.p.Pages)), make([]uint64, d.n*len(d.p.Pages)), 0
	d.dealt = make([]uint64, len(d.p.Regions))
	for i := range d.luck {
		d.luck[i] = make([]uint64, len(d.p.Pages))
	}
	serial := access.SerialCode(d.p)
	again := make([]*profile.Profile, len(d.opt.Again))
	for i, f := range d.opt.Again {
		again[i] = steady(f.Profile)
	}
	d.chance, d.grain = classify.FindChance(d.p, again, d.counts), 1
	d.expected = d.newTable()
	d.same = d.expected
	if d.chance.Any() {
		d.grain, d.same = fineGrain, d.newTable()
	}
	dealt := newDealt(d)
	d.loops = newLoops(d)
	moving := newMoving(d, in)
	for i := range d.p.Rows {
		r := &d.p.Rows[i]
		if in != nil && !in[r.Region] {
			continue
		}
		node, home, count := int(d.p.Threads[r.Thread].Node), d.p.Pages[r.Page].Home, r.Count*d.grain
		var beyond uint64
		if wide(r) {
			beyond = count
		}
		repeats := d.chance.Repeats(r)
		if !d.counts(r) {
			if !moving.add(r, 0, beyond) {
				d.wide[int(r.Page)*d.n+node] += dealt.beyond(r, beyond, repeats)
			}
			continue
		}
		if home != topo.Unknown {
			d.known += count
		}
		same := count
		if repeats < 1 {
			sure := uint64(repeats * float64(count))
			dealt.add(r, node, count-sure)
			count = sure
			if d.chance.Evidence(int(r.Region)) != classify.Guessed {
				same = sure
			}
		}
		if d.same != d.expected && same > count {
			d.same.base[int(r.Page)*d.n+node] += same - count
		}
		if moving.add(r, count, beyond) {
			continue
		}
		d.wide[int(r.Page)*d.n+node] += dealt.beyond(r, beyond, repeats)
		d.expected.base[int(r.Page)*d.n+node] += count
		if d.same != d.expected {
			d.same.base[int(r.Page)*d.n+node] += count
		}
		if serial(r) {
			d.serial[int(r.Page)*d.n+node] += count
		}
	}
	dealt.spread()
	d.flows = merge(moving.flows, len(d.p.Pages))
}

// page is the accesses to page i of the profile, by node.
func (d *demand) page(i int) []uint64 { return d.of(d.use, i) }

// of is the part of use, of a table, that is of one page.
func (d *demand) of(use []uint64, page int) []uint64 {
	return access.Use{Nodes: d.n, DRAM: use}.Page(page)
}

// cell is one page of a unit that somebody used: page of pages in the sense of
// Distribution.Home.
type cell struct {
	profile     int // index in profile.Pages
	page, pages int
	home        int // -1 is not known
	use         []uint64
	all, stay   uint64 // stay: local where it is left at home
	back        int32  // pages from the first of the unit that gets one node to page, its middle
	tossed      bool   // another node may touch it first in the next run
}

// remote is the remote accesses with the cell on node; -1 leaves it at home. A
// page without a home has none: it was only read, and no plan gives it one.
func (c *cell) remote(node int) uint64 {
	if c.home < 0 {
		return 0
	}
	if node < 0 {
		return c.all - min(c.all, c.stay)
	}
	return c.all - c.use[node]
}

// least is the fewest remote accesses to c that a place of it makes.
func (d *demand) least(c *cell) uint64 {
	if c.home < 0 {
		return 0
	}
	return min(c.remote(-1), c.remote(d.best(c.use, c.home)))
}

// splitBy is split by the table t.
func (d *demand) splitBy(t *table, groups []group) Split {
	now := d.table
	d.table = t
	defer func() { d.table = now }()
	return d.split(groups, false)
}

// split evaluates the whole table: as profiled (groups nil), with the choices
// of groups, or with every placeable page on its best node.
func (d *demand) split(groups []group, best bool) Split {
	at, shared := d.places(groups)
	s := Split{Load: make([]uint64, d.n)}
	for i := range at {
		c := cell{home: d.home[i], use: d.page(i), stay: d.stay[i]}
		if c.home < 0 {
			continue
		}
		c.all = d.total(i, d.n)
		if best && d.placeable(&d.p.Objects[d.p.Pages[i].Object]) {
			if n := d.best(c.use, c.home); c.remote(n) < c.remote(-1) {
				at[i] = n
			}
		}
		s.Known += c.all
		if w := d.tossed[i]; w != nil && at[i] < 0 && shared[i] == nil {
			s.Remote += c.remote(-1)
			for n := range w {
				s.Load[n] += share(c.all, w[n], sum(w))
			}
			continue
		}
		if nodes := shared[i]; nodes != nil {
			s.Remote += c.all - mean(c.use, nodes)
			for _, n := range nodes {
				s.Load[n] += c.all / uint64(len(nodes))
			}
			continue
		}
		s.Remote += c.remote(at[i])
		if at[i] < 0 {
			s.Load[c.home] += c.all
		} else {
			s.Load[at[i]] += c.all
		}
	}
	return s
}

// places is where each page is with the choices of groups: its node in at, -1 left
// at home, or the nodes that it is interleaved over in shared.
func (d *demand) places(groups []group) (at []int, shared map[int][]int) {
	at, shared = make([]int, len(d.p.Pages)), make(map[int][]int)
	for i := range at {
		at[i] = -1
	}
	for i := range groups {
		for _, u := range groups[i].chosen {
			d.move(u, at, shared)
		}
	}
	return at, shared
}

// move sets where the pages of u will be.
func (d *demand) move(u unit, at []int, shared map[int][]int) {
	home := homes(u.place, d.n)
	for _, c := range u.cells {
		if c.home < 0 {
			continue
		}
		if u.place.Policy == plan.Interleave {
			shared[c.profile] = d.interleaved(u.place)
		} else if n := home(c.page, c.pages); n >= 0 {
			at[c.profile] = n
		}
	}
}

// interleaved is the nodes over which dist interleaves.
func (d *demand) interleaved(dist plan.Distribution) []int {
	if len(dist.Nodes) > 0 {
		return dist.Nodes
	}
	all := make([]int, d.n)
	for i := range all {
		all[i] = i
	}
	return all
}

// best is the node that can hold a page and uses it most; home among equals,
// else the lowest.
func (d *demand) best(use []uint64, home int) int {
	best := home
	for n, c := range use {
		if d.canHold[n] && c > use[best] {
			best = n
		}
	}
	return best
}

// OwnRuntime is the base name of numaopt's preload library, whose tables are in
// the program but none of its own.
const OwnRuntime = "libnumaopt.so"

// placeable reports whether a plan can name o and the runtime can place it.
func (d *demand) placeable(o *profile.Object) bool {
	switch o.Kind {
	case profile.Heap, profile.Mapping:
		return !o.FileBacked && !o.Placed && o.Site >= 0 && len(d.stacks[o.Site]) > 0
	case profile.Global:
		name := moduleName(d.p, o.Module)
		return !o.Placed && o.Symbol != "" && name != "" && name != OwnRuntime
	}
	return false
}

func sum(v []uint64) uint64 {
	var s uint64
	for _, x := range v {
		s += x
	}
	return s
}

// mean of use over nodes, rounded down.
func mean(use []uint64, nodes []int) uint64 {
	var s uint64
	for _, n := range nodes {
		s += use[n]
	}
	return s / uint64(len(nodes))
}
