package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// Schedules move accesses, not pages: where a loop's chunks are permuted, what
// thread t was seen to do in it another thread does. Threads are told apart as far
// as that matters: a class is the threads of one node whose mirror images under
// static-inverse, T-1-t, are on one node, too.

// schedule is who takes which chunks; the zero value is OpenMP's static.
type schedule struct {
	kind  plan.Schedule
	nodes []int // see plan.Loop.Nodes
	step  int   // see plan.Loop.Step
}

func (s schedule) static() bool { return s.kind == "" }

func (s schedule) String() string {
	if s.static() {
		return "static"
	}
	switch s.kind {
	case plan.ByNodes:
		return fmt.Sprintf("%s %v", s.kind, s.nodes)
	case plan.BlockExclusive:
		return fmt.Sprintf("%s %v step %d", s.kind, s.nodes, s.step)
	}
	return string(s.kind)
}

// loopGroup is loops that must be permuted alike.
type loopGroup struct {
	regions []int  // in profile.Regions, ascending
	refused string // why they must stay static; empty if they need not
	all     uint64 // accesses in them that move with their chunks
	sweep   int    // see sweepOf
}

// loops is the worksharing loops of a profile.
type loops struct {
	n      int
	of     []int // by region: its group, -1 is none that can be permuted
	groups []loopGroup
	why    []string // by region: why a worksharing loop cannot be permuted
	class  []int    // by thread of the profile
	// classes is how many there are; node and mirror are by slot, see phases.go:
	// where the threads are, and where those are that run their chunks under
	// static-inverse.
	classes      int
	node, mirror []int
	touched      []uint8 // by page: the part of a sweep in which it was touched first
	misses       bool    // DRAM accesses are planned for, see again
	// byNodes is true where each node has as many threads, in the order of ranks, so
	// that schedule "nodes" has a meaning.
	byNodes bool
}

// worksharing reports whether region r is a loop that a plan can name.
func worksharing(p *profile.Profile, r *profile.Region) bool {
	return r.Worksharing() && moduleName(p, r.Site.Module) != ""
}

// newLoops finds the loops of d's profile that can be permuted.
func newLoops(d *demand) *loops {
	p := d.p
	l := &loops{n: d.n, misses: !d.allLevels, of: make([]int, len(p.Regions)), why: make([]string, len(p.Regions))}
	for i := range l.of {
		l.of[i] = -1
	}
	if d.opt.NoSchedules {
		return l
	}
	teams, ran := teams(p)
	chance := d.byChance()
	stuck := l.classify(p, ran)
	for i := range p.Regions {
		if r := &p.Regions[i]; worksharing(p, r) {
			if l.why[i] = d.refusal(i, teams[codeOf(r.Code)], chance[i]); l.why[i] == "" {
				l.why[i] = stuck
			}
		}
	}
	l.gather(d)
	l.addPhases(p)
	return l
}

type codeKey struct {
	module int
	offset uint64
}

func codeOf(c ident.Code) codeKey { return codeKey{c.Module, c.Offset} }

// teams is the threads that were seen in each outlined function, and which of the
// profile's ran worksharing loops: libomp binds the main thread to one CPU after
// the other before it starts the first team.
func teams(p *profile.Profile) (teams map[codeKey]int, ran []bool) {
	size := make([]int, len(p.Regions))
	ran = make([]bool, len(p.Threads))
	for i := range p.Rows {
		r := &p.Rows[i]
		size[r.Region] = max(size[r.Region], p.Threads[r.Thread].Rank+1)
		ran[r.Thread] = ran[r.Thread] || p.Regions[r.Region].Kind == profile.Loop
	}
	teams = make(map[codeKey]int)
	for i := range p.Regions {
		if r := &p.Regions[i]; r.Kind == profile.Loop {
			teams[codeOf(r.Code)] = max(teams[codeOf(r.Code)], size[i])
		}
	}
	return teams, ran
}

func cpus(p *profile.Profile) (n int) {
	for _, node := range p.Run.Topology.Nodes {
		n += len(node.CPUs)
	}
	return n
}

// byChance tells of each region whether other threads do a considerable part of its
// work in each run.
func (d *demand) byChance() []bool {
	all, lost := make([]float64, len(d.p.Regions)), make([]float64, len(d.p.Regions))
	for i := range d.p.Rows {
		if r := &d.p.Rows[i]; d.counts(r) && d.p.Regions[r.Region].Worksharing() {
			all[r.Region] += float64(r.Count)
			lost[r.Region] += float64(r.Count) * (1 - d.chance.Repeats(r))
		}
	}
	is := make([]bool, len(all))
	for i := range is {
		is[i] = 10*lost[i] > all[i]
	}
	return is
}

// nested is why a loop stays as it is that asks for its bounds as static ones do, though
// its threads are not the same each time. Dynamic loops ask otherwise, and are none that
// a plan can name unless they ran affine.
const nested = "any thread may run any of its chunks: it is in a team inside a team, or beside tasks"

// refusal is why region i, of a team of this size, must stay as it is; empty if it
// need not.
func (d *demand) refusal(i, team int, chance bool) string {
	r := &d.p.Regions[i]
	all := cpus(d.p)
	why, looked := d.opt.Refuse[i]
	switch {
	case affine(r):
		return "each node's threads have the chunks of their part"
	case r.Schedule == profile.Affine:
		return "it hands out its work dynamically; it ran affine for this profile, which plan takes up with --affine"
	case r.Dynamic:
		return nested
	case why != "":
		return why
	case r.Schedule != "static" && !(looked && r.Runtime == "libgomp"):
		return "its schedule is chunked, or not known"
	case chance:
		return "other threads do its work in each run"
	case team != all:
		return fmt.Sprintf("%d threads run it, and only a team of one thread for each of the %d CPUs is permuted", team, all)
	}
	return ""
}

// classify sorts the threads, by where those that ran loops are; the text is why
// nothing can be permuted.
func (l *loops) classify(p *profile.Profile, ran []bool) string {
	all := cpus(p)
	at := make([]int, all) // rank → node
	for r := range at {
		at[r] = -1
	}
	for i := range p.Threads {
		if t := &p.Threads[i]; t.Rank < all && ran[i] {
			if n := at[t.Rank]; n >= 0 && n != int(t.Node) {
				return fmt.Sprintf("thread %d ran on several nodes: bind the threads", t.Rank)
			}
			at[t.Rank] = int(t.Node)
		}
	}
	l.byNodes = all%l.n == 0
	for r, n := range at {
		if n < 0 {
			return fmt.Sprintf("no loop has a thread %d: a team of one for each of the %d CPUs is what is permuted", r, all)
		}
		l.byNodes = l.byNodes && n == r/(all/l.n)
	}
	type key struct{ node, mirror int }
	seen := make(map[key]int)
	for i := range p.Threads {
		if !ran[i] {
			l.class = append(l.class, 0) // nobody asks
			continue
		}
		t := &p.Threads[i]
		k := key{int(t.Node), int(t.Node)}
		if t.Rank < all {
			k.mirror = at[all-1-t.Rank]
		}
		c, ok := seen[k]
		if !ok {
			c = len(l.node)
			seen[k] = c
			l.node, l.mirror = append(l.node, k.node), append(l.mirror, k.mirror)
		}
		l.class = append(l.class, c)
	}
	l.classes = len(l.node)
	if p.Run.Bind == "none" && len(p.Run.Pinned) == 0 {
		return "the threads were not bound"
	}
	return ""
}

// gather makes groups of the loops that must be permuted alike: those of one call
// site; and of one outlined function, because a thread may keep data of its own,
// threadprivate or on its stack, from one static loop of a region to the next
// (OpenMP 5.1, §2.11.4, promises it the same iterations). Options.Apart frees of
// these those that a barrier separates. Where one must stay static, all must.
func (l *loops) gather(d *demand) {
	p := d.p
	leader := make([]int, len(p.Regions))
	for i := range leader {
		leader[i] = i
	}
	find := func(i int) int {
		for leader[i] != i {
			i = leader[i]
		}
		return i
	}
	type key struct {
		code  codeKey
		group int
		site  bool
	}
	first := make(map[key]int)
	join := func(k key, i int) {
		if j, ok := first[k]; ok {
			a, b := find(i), find(j)
			leader[max(a, b)] = min(a, b)
		} else {
			first[k] = i
		}
	}
	for i := range p.Regions {
		if r := &p.Regions[i]; worksharing(p, r) && promised(r) {
			join(key{code: codeOf(r.Site), site: true}, i)
			switch {
			case d.opt.Apart == nil || !d.opt.Apart(i):
				join(key{code: codeOf(r.Code), group: -1}, i)
			case r.Group > 0:
				join(key{code: codeOf(r.Code), group: r.Group}, i)
			}
		}
	}
	l.collect(p, find)
}

// promised reports whether OpenMP promises that a thread takes the same iterations
// in r as in another static loop of its region: not where a runtime was told of
// another schedule.
func promised(r *profile.Region) bool {
	return r.Schedule == "static" || r.Runtime != "libomp" && r.Schedule != profile.Affine
}

// collect makes groups of the regions with one leader.
func (l *loops) collect(p *profile.Profile, find func(int) int) {
	members := make(map[int][]int)
	var leaders []int
	for i := range p.Regions {
		if r := &p.Regions[i]; worksharing(p, r) && promised(r) {
			k := find(i)
			if members[k] == nil {
				leaders = append(leaders, k)
			}
			members[k] = append(members[k], i)
		}
	}
	for _, k := range leaders {
		g := loopGroup{regions: members[k], sweep: l.sweepOf(p, members[k])}
		if len(l.groups) > math.MaxUint16 { // see flow
			g.refused = "the program has too many loops"
		}
		for _, i := range g.regions {
			if p.Regions[i].Site.Module != p.Regions[k].Site.Module {
				g.refused = "it must be scheduled as a loop of another file, which may be rebuilt, or loaded later, without it"
			}
		}
		for _, i := range g.regions {
			if l.why[i] != "" && g.refused == "" {
				g.refused = fmt.Sprintf("it must be scheduled as %s, which cannot be permuted: %s", clean(p.Regions[i].Name), l.why[i])
			}
		}
		for _, i := range g.regions {
			if g.refused == "" {
				l.of[i] = len(l.groups)
			} else if l.why[i] == "" {
				l.why[i] = g.refused
			}
		}
		if g.refused == "" {
			l.groups = append(l.groups, g)
		}
	}
}

// targets is where each slot's chunks are run under s.
func (l *loops) targets(s schedule) []int {
	to := slices.Clone(l.node)
	switch s.kind {
	case plan.StaticInverse:
		copy(to, l.mirror)
	case plan.ByNodes:
		for c, m := range l.node {
			to[c] = slices.Index(s.nodes, m)
		}
	case plan.BlockExclusive:
		for c, m := range l.node {
			to[c] = l.inPhase(s, c, m)
		}
	}
	return to
}

// maxPermuted is the most nodes of which all permutations are tried; of more, the
// best one for where the pages are, and the rotations.
const maxPermuted = 4

// candidates are the schedules to try, simplest first, each once by where it takes
// the classes.
func (l *loops) candidates() []schedule {
	list := []schedule{{}}
	seen := [][]int{l.targets(schedule{})}
	add := func(s schedule) {
		to := l.targets(s)
		if !slices.ContainsFunc(seen, func(x []int) bool { return slices.Equal(x, to) }) {
			seen = append(seen, to)
			list = append(list, s)
		}
	}
	add(schedule{kind: plan.StaticInverse})
	if !l.byNodes {
		return list
	}
	for by := 1; by < l.n; by++ {
		nodes := make([]int, l.n)
		for n := range nodes {
			nodes[n] = (n + by) % l.n
		}
		add(schedule{kind: plan.ByNodes, nodes: nodes})
	}
	if l.n <= maxPermuted {
		permutations(l.n, func(nodes []int) { add(schedule{kind: plan.ByNodes, nodes: slices.Clone(nodes)}) })
	}
	return list
}

// permutations calls do with each order of 0 to n-1.
func permutations(n int, do func([]int)) {
	list := make([]int, 0, n)
	var extend func()
	extend = func() {
		if len(list) == n {
			do(list)
		}
		for x := range n {
			if !slices.Contains(list, x) {
				list = append(list, x)
				extend()
				list = list[:len(list)-1]
			}
		}
	}
	extend()
}

// byNode is the schedule that takes the chunks of node m to node to[m].
func (l *loops) byNode(to []int) schedule {
	s := schedule{kind: plan.ByNodes, nodes: make([]int, l.n)}
	for m, n := range to {
		s.nodes[n] = m
	}
	want := l.targets(s)
	for _, simple := range []schedule{{}, {kind: plan.StaticInverse}} {
		if slices.Equal(l.targets(simple), want) {
			return simple
		}
	}
	return s
}

// flow is accesses to one page by one slot in the loops of one group.
type flow struct {
	page        uint32
	group, slot uint16
	count       uint64
	// wide is all that leave a core's own caches, see search.real; again those that
	// count besides if another node ran the phase before, see loops.made.
	wide, again uint64
}

// merge sorts flows by page, group and slot and adds up equal ones; pages is how
// many pages there are. It is a counting sort by page: linear but for the few
// flows of each page.
func merge(flows []flow, pages int) []flow {
	next := make([]int, pages+1)
	for i := range flows {
		next[flows[i].page+1]++
	}
	for i := range pages {
		next[i+1] += next[i]
	}
	sorted := make([]flow, len(flows))
	for _, f := range flows {
		sorted[next[f.page]] = f
		next[f.page]++
	}
	out := sorted[:0]
	for from := 0; from < len(sorted); {
		to := from + 1
		for to < len(sorted) && sorted[to].page == sorted[from].page {
			to++
		}
		page := sorted[from:to]
		slices.SortFunc(page, func(a, b flow) int {
			return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.slot, b.slot))
		})
		start := len(out)
		for _, f := range page {
			if last := len(out) - 1; last >= start && out[last].group == f.group && out[last].slot == f.slot {
				out[last].count += f.count
				out[last].wide += f.wide
				out[last].again += f.again
			} else {
				out = append(out, f)
			}
		}
		from = to
	}
	return slices.Clone(out) // lets go of the rest
}

// moving collects the accesses that move with the chunks of their loops.
type moving struct {
	l        *loops
	ofThread []bool // by object, see ownObjects
	p        *profile.Profile
	grain    uint64
	flows    []flow
}

// newMoving prepares for the rows of in, nil is all.
func newMoving(d *demand, in []bool) *moving {
	n := 0
	for i := range d.p.Rows {
		if r := &d.p.Rows[i]; d.loops.of[r.Region] >= 0 && (d.counts(r) || wide(r)) && (in == nil || in[r.Region]) {
			n++
		}
	}
	return &moving{l: d.loops, ofThread: d.ofThread, p: d.p, grain: d.grain, flows: make([]flow, 0, n)}
}

// wide reports whether the accesses of r leave the caches of a core.
func wide(r *profile.Row) bool { return r.Level >= profile.LLC }

// add takes accesses of r, count that count and those that are wide; false where
// they stay with their thread.
func (m *moving) add(r *profile.Row, count, wide uint64) bool {
	g := m.l.of[r.Region]
	if g < 0 || m.ofThread[m.p.Pages[r.Page].Object] {
		return false
	}
	m.l.groups[g].all += count
	again := m.l.again(m.p, g, r) * m.grain
	for x := range m.l.pieces(g, r) {
		f := flow{uint32(r.Page), uint16(g), uint16(x.slot), x.of(count), x.of(wide), 0}
		if x.from > 0 {
			f.again = again
		}
		if f.count+f.wide+f.again > 0 {
			m.flows = append(m.flows, f)
		}
	}
	return true
}

// ownObjects tells of each object whether it is a thread's own, whoever runs which
// chunk: its stack, and what another than the main thread allocated and nobody
// else uses.
func ownObjects(p *profile.Profile) []bool {
	own := make([]bool, len(p.Objects))
	for i := range p.Objects {
		o := &p.Objects[i]
		own[i] = o.Kind == profile.Stack || o.Site >= 0 && o.Rank > 0
	}
	for i := range p.Rows {
		r := &p.Rows[i]
		o := p.Pages[r.Page].Object
		if x := &p.Objects[o]; own[o] && x.Kind != profile.Stack && p.Threads[r.Thread].Rank != x.Rank {
			own[o] = false
		}
	}
	return own
}

// arrange makes d's use, homes and local accesses those with the loops permuted as
// list says, by group; nil is as profiled. A page that a permuted loop touches
// first is first touched where its chunk runs then.
func (d *demand) arrange(list []schedule) {
	d.schedules = list
	to := make([][]int, len(d.loops.groups))
	for g := range to {
		s := schedule{}
		if list != nil {
			s = list[g]
		}
		to[g] = d.loops.targets(s)
	}
	d.home = make([]int, len(d.p.Pages))
	for i := range d.home {
		d.home[i] = d.firstTouch(i, to)
	}
	for _, t := range d.tables() {
		t.use, t.stay = slices.Clone(t.base), make([]uint64, len(d.p.Pages))
		for i := range d.flows {
			f := &d.flows[i]
			t.use[int(f.page)*d.n+to[f.group][f.slot]] += d.loops.made(f, to[f.group])
		}
		if t.weighed {
			t.all = make([]uint64, len(d.p.Pages))
			for i := range t.all {
				t.all[i] = sum(d.of(t.use, i))
				d.distances.weigh(d.of(t.use, i))
			}
		}
		for i, h := range d.home {
			if h >= 0 {
				t.stay[i] = uint64(max(0, int64(d.homeUse(i, h, d.of(t.use, i)))+t.drift[i]))
			}
		}
	}
}

// firstTouch is the node on which page i has its home if it is left alone, with
// the loops' chunks run where to says by group and slot.
func (d *demand) firstTouch(i int, to [][]int) int {
	g, c := d.toucher(i)
	if g < 0 {
		return int(d.p.Pages[i].Home)
	}
	if n := to[g][c]; d.canHold[n] {
		return n
	}
	return int(d.p.Pages[i].Home)
}

// toucher is the group of loops whose chunk touched page i first, and the slot that
// ran it; -1 where its home does not depend on schedules.
func (d *demand) toucher(i int) (group, slot int) {
	pg := &d.p.Pages[i]
	if pg.Home < 0 || pg.Thread < 0 || pg.Region < 0 || d.loops.of[pg.Region] < 0 ||
		d.p.Threads[pg.Thread].Node != pg.Home || d.ofThread[pg.Object] {
		return -1, 0
	}
	g := d.loops.of[pg.Region]
	return g, d.loops.toucher(g, i, pg.Thread)
}

// loopShare is part of the accesses of a loop in words.
func loopShare(part, all uint64) string {
	return units.FormatPercent(units.Percent(float64(part), float64(all)))
}
