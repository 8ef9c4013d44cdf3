package planner

import (
	"cmp"
	"slices"
)

// search looks for the schedules and homes of pages with the fewest remote
// accesses. It alternates, because each is easy given the other: given the
// schedules, a page belongs on the node that then uses it most; given the homes,
// each group of loops has the permutation that takes most of its accesses home.
// That ends in a local optimum, so it starts from several places, and afterwards
// tries for each group every candidate with the pages following.
//
// It looks only at pages that permutable loops use, one by one; what a plan can
// say of whole objects, Build finds out afterwards.
type search struct {
	d     *demand
	pages []searched
	list  []schedule
	steps float64 // pages placed so far one candidate at a time
	// byGroup lists the pages k that each group uses or touches first.
	byGroup [][]int
	use     []uint64 // scratch, by node
}

// searched is one page that permutable loops use.
type searched struct {
	page     int // in profile.Pages
	flows    []flow
	all      uint64 // accesses, as profiled
	home     int    // as profiled, -1 is not known
	flexible bool   // the plan can place it
	// group of loops that touched it first, -1 is none, and the slot that did.
	group, slot int
}

// state is a choice for every group.
type state struct {
	choice []schedule
	to     [][]int // by group and slot
	remote uint64
	moved  uint64 // accesses in loops that do not stay static
}

// maxAnchors bounds the loops, and the objects, that others are made to follow at
// the start of a search.
const maxAnchors = 4

// maxSteps bounds the work of trying every candidate of every group with the pages
// following, in pages placed: a few seconds.
const maxSteps = 2e7

// newSearch prepares a search; nil where nothing can be permuted.
func newSearch(d *demand) *search {
	if len(d.flows) == 0 {
		return nil
	}
	s := &search{d: d, list: d.loops.candidates(), byGroup: make([][]int, len(d.loops.groups)), use: make([]uint64, d.n)}
	used := 0
	for i := range d.flows {
		if i == 0 || d.flows[i].page != d.flows[i-1].page {
			used++
		}
	}
	s.pages = make([]searched, 0, used)
	for from := 0; from < len(d.flows); {
		to := from + 1
		for to < len(d.flows) && d.flows[to].page == d.flows[from].page {
			to++
		}
		s.add(d.flows[from:to])
		from = to
	}
	return s
}

// add adds the page of flows.
func (s *search) add(flows []flow) {
	d, i := s.d, int(flows[0].page)
	x := searched{page: i, flows: flows, all: sum(d.base[i*d.n : (i+1)*d.n]), home: int(d.p.Pages[i].Home)}
	x.flexible = d.placeable(&d.p.Objects[d.p.Pages[i].Object])
	x.group, x.slot = d.toucher(i)
	toucher, last := x.group, -1
	for _, f := range flows {
		x.all += f.count
		if g := int(f.group); g != last {
			s.byGroup[g] = append(s.byGroup[g], len(s.pages))
			last = g
		}
		if int(f.group) == toucher {
			toucher = -1
		}
	}
	if toucher >= 0 {
		s.byGroup[toucher] = append(s.byGroup[toucher], len(s.pages))
	}
	s.pages = append(s.pages, x)
}

// state evaluates choice.
func (s *search) state(choice []schedule) *state {
	x := &state{choice: choice, to: make([][]int, len(choice))}
	for g, c := range choice {
		x.to[g] = s.d.loops.targets(c)
		if !c.static() {
			x.moved += s.d.loops.groups[g].all
		}
	}
	for k := range s.pages {
		_, remote := s.place(k, x.to)
		x.remote += remote
	}
	return x
}

// place is the node that page k belongs on with chunks run where to says, and the
// remote accesses to it there: the node that uses it most, or where first touch
// leaves it if that is as good but for Options.PageGain.
func (s *search) place(k int, to [][]int) (home int, remote uint64) {
	d, x := s.d, &s.pages[k]
	if x.home < 0 {
		return -1, 0
	}
	copy(s.use, d.base[x.page*d.n:(x.page+1)*d.n])
	all := x.all
	for i := range x.flows {
		f := &x.flows[i]
		made := d.loops.made(f, to[f.group])
		s.use[to[f.group][f.slot]] += made
		all += made - f.count
	}
	d.distances.weigh(s.use)
	home = x.home
	if x.group >= 0 {
		if n := to[x.group][x.slot]; d.canHold[n] {
			home = n
		}
	}
	remote = all - uint64(min(int64(all), max(0, int64(d.homeUse(x.page, home, s.use))+d.drift[x.page])))
	if !x.flexible {
		return home, remote
	}
	best := d.best(s.use, home)
	if away := all - s.use[best]; away < remote && float64(remote-away) > d.opt.PageGain*float64(all) {
		return best, away
	}
	return home, remote
}

// better reports whether a is to be preferred: fewer remote accesses, where each
// access in a loop that is permuted counts for Options.ScheduleGain of one. Of two
// ways of which one is the other's mirror image, that is the one that permutes less.
func (s *search) better(a, b *state) bool {
	cost := func(x *state) float64 { return float64(x.remote) + s.d.opt.ScheduleGain*float64(x.moved) }
	return cost(a) < cost(b)
}

// run finds the best schedules, by group.
func (s *search) run() *state {
	static := make([]schedule, len(s.byGroup))
	ends := []*state{s.alternate(s.state(static))}
	try := func(choice []schedule) { ends = append(ends, s.alternate(s.state(choice))) }
	for _, against := range s.against() {
		try(against)
	}
	l := s.d.loops
	for _, g := range s.heaviest() {
		of := func(_ int, f flow) bool { return int(f.group) == g }
		try(s.matched(s.wanted(l.node, of)))
		if l.groups[g].sweep > 0 {
			try(s.matched(s.wanted(l.targets(l.rotations()[0]), of)))
		}
	}
	for _, o := range s.objects() {
		try(s.matched(s.wanted(l.node, func(i int, _ flow) bool { return s.d.p.Pages[i].Object == o })))
	}
	slices.SortStableFunc(ends, func(a, b *state) int { return cmp.Compare(a.remote, b.remote) })
	best := ends[0]
	for i, x := range ends {
		if i > 0 && x.remote == ends[i-1].remote && x.moved == ends[i-1].moved {
			continue // the same end, most likely
		}
		if x = s.climb(x); s.better(x, best) {
			best = x
		}
	}
	return s.prune(best)
}

// alternate improves x until nothing gets better.
func (s *search) alternate(x *state) *state {
	for {
		homes := make([]int, len(s.pages))
		for k := range homes {
			homes[k], _ = s.place(k, x.to)
		}
		y := s.state(s.matched(homes))
		if y.remote >= x.remote {
			return x
		}
		x = y
	}
}

// matched is the best schedule of each group for pages on homes, by k; -1 does not
// count.
func (s *search) matched(homes []int) []schedule {
	l := s.d.loops
	gain := make([][]uint64, len(s.byGroup)) // by slot*n+node: accesses less their cost with the chunk run there
	for g := range gain {
		gain[g] = make([]uint64, len(l.node)*l.n)
	}
	for k, h := range homes {
		if h < 0 {
			continue
		}
		for _, f := range s.pages[k].flows {
			at := gain[f.group][int(f.slot)*l.n:][:l.n]
			if s.d.distances == nil {
				at[h] += f.count
				continue
			}
			for n := range at {
				at[n] += s.d.distances.near(f.count, n, h)
			}
		}
	}
	choice := make([]schedule, len(gain))
	for g := range gain {
		choice[g] = s.match(g, gain[g])
	}
	return choice
}

// match is the schedule of group g with the largest gain, the simplest among equals.
// One that differs by phase must gain considerably more than the others.
func (s *search) match(g int, gain []uint64) schedule {
	l := s.d.loops
	local := func(c schedule) (sum uint64) {
		for slot, n := range l.targets(c) {
			sum += gain[slot*l.n+n]
		}
		return sum
	}
	list := s.list
	if l.byNodes && l.n > maxPermuted {
		list = append(slices.Clip(list), l.byNode(assignment(l.square(gain), l.n)))
	}
	best, most := schedule{}, local(schedule{})
	for _, c := range list {
		if x := local(c); x > most {
			best, most = c, x
		}
	}
	if l.groups[g].sweep == 0 {
		return best
	}
	most += uint64(s.d.opt.ScheduleGain * float64(l.groups[g].all))
	for _, step := range l.turns() {
		c := l.bestRotation(gain, step)
		if x := local(c); x > most {
			best, most = c, x
		}
	}
	return best
}

// candidates is the schedules to try for group g, simplest first.
func (s *search) candidates(g int) []schedule {
	if s.d.loops.groups[g].sweep == 0 {
		return s.list
	}
	return append(slices.Clip(s.list), s.d.loops.rotations()...)
}

// square is gain with slots added up by their nodes.
func (l *loops) square(gain []uint64) []int64 {
	m := make([]int64, l.n*l.n)
	for slot, from := range l.node {
		for n := range l.n {
			m[from*l.n+n] += int64(gain[slot*l.n+n])
		}
	}
	return m
}

// wanted is the homes that the flows of which count says so want, with each slot's
// chunks run where to says; -1 where none does.
func (s *search) wanted(to []int, count func(page int, f flow) bool) []int {
	homes := make([]int, len(s.pages))
	for k := range homes {
		homes[k] = -1
		clear(s.use)
		i := s.pages[k].page
		for _, f := range s.pages[k].flows {
			if count(i, f) {
				s.use[to[f.slot]] += f.count
			}
		}
		s.d.distances.weigh(s.use)
		if n := s.d.best(s.use, slices.Index(s.d.canHold, true)); s.use[n] > 0 {
			homes[k] = n
		}
	}
	return homes
}

// heaviest is the groups with most accesses.
func (s *search) heaviest() []int {
	order := make([]int, len(s.byGroup))
	for g := range order {
		order[g] = g
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(s.d.loops.groups[b].all, s.d.loops.groups[a].all)
	})
	return order[:min(len(order), maxAnchors)]
}

// objects is the objects with most accesses that move.
func (s *search) objects() []int {
	weight := make([]uint64, len(s.d.p.Objects))
	var order []int
	for k := range s.pages {
		o := s.d.p.Pages[s.pages[k].page].Object
		if weight[o] == 0 {
			order = append(order, o)
		}
		for _, f := range s.pages[k].flows {
			weight[o] += f.count
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight[b], weight[a]) })
	return order[:min(len(order), maxAnchors)]
}

// against reverses the loops that walk their objects against the order of the
// others: those that go down, and those that go up.
func (s *search) against() (starts [][]schedule) {
	slope := s.slopes()
	inverse := s.d.loops.candidates()[min(1, len(s.list)-1)]
	for _, sign := range []float64{-1, 1} {
		choice := make([]schedule, len(slope))
		for g, x := range slope {
			if sign*x > 0 {
				choice[g] = inverse
			}
		}
		starts = append(starts, choice)
	}
	return starts
}

// slopes is by group: does the node of the thread rise with the page (positive), or
// fall? The covariance in each object counts by its accesses.
func (s *search) slopes() []float64 {
	slope := make([]float64, len(s.byGroup))
	type moments struct{ w, x, y, xy float64 }
	at := make([]moments, len(slope)) // of the object at hand
	flush := func() {
		for g := range at {
			if m := &at[g]; m.w > 0 {
				slope[g] += m.xy - m.x*m.y/m.w
				*m = moments{}
			}
		}
	}
	last := -1
	for k := range s.pages {
		pg := &s.d.p.Pages[s.pages[k].page]
		if pg.Object != last {
			flush()
			last = pg.Object
		}
		for _, f := range s.pages[k].flows {
			m, w := &at[f.group], float64(f.count)
			x := float64(pg.Index) / float64(s.d.p.Objects[pg.Object].Pages())
			y := float64(s.d.loops.node[f.slot])
			m.w, m.x, m.y, m.xy = m.w+w, m.x+w*x, m.y+w*y, m.xy+w*x*y
		}
	}
	flush()
	return slope
}

// climb tries every candidate for each group, heaviest first, with the pages that
// it uses following, until nothing gets better or maxSteps are done.
func (s *search) climb(x *state) *state {
	order := make([]int, len(s.byGroup))
	for g := range order {
		order[g] = g
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(s.d.loops.groups[b].all, s.d.loops.groups[a].all)
	})
	for improved := true; improved; {
		improved = false
		for _, g := range order {
			if s.steps += float64(len(s.candidates(g)) * len(s.byGroup[g])); s.steps > maxSteps {
				return x
			}
			if c := s.change(x, g); c != nil {
				y := s.with(x, g, *c)
				if s.better(y, x) {
					x, improved = y, true
				}
			}
		}
	}
	return x
}

// change is the candidate for group g with the fewest remote accesses, nil where
// what x has is as good.
func (s *search) change(x *state, g int) *schedule {
	least := s.remoteOf(x, g, x.choice[g])
	var best *schedule
	for _, c := range s.candidates(g) {
		if r := s.remoteOf(x, g, c); r < least {
			best, least = &c, r
		}
	}
	return best
}

// remoteOf is the remote accesses to the pages that group g uses, with g permuted
// as c and all others as in x.
func (s *search) remoteOf(x *state, g int, c schedule) (remote uint64) {
	to := slices.Clone(x.to)
	to[g] = s.d.loops.targets(c)
	for _, k := range s.byGroup[g] {
		_, r := s.place(k, to)
		remote += r
	}
	return remote
}

// with is x with group g permuted as c.
func (s *search) with(x *state, g int, c schedule) *state {
	choice := slices.Clone(x.choice)
	choice[g] = c
	return s.state(choice)
}

// loss is the remote accesses that group g left static costs more than as in x.
func (s *search) loss(x *state, g int) uint64 {
	static, now := s.remoteOf(x, g, schedule{}), s.remoteOf(x, g, x.choice[g])
	return static - min(static, now)
}

// real reports whether what x saves by permuting group g, loss, is more than what
// the caches happen to hold. Where all nodes use a page alike, the one that used it
// last before finds it in its LLC and makes the fewest DRAM accesses to it; that
// stays with the node and does not go with the chunk. So at least half of the
// saving must be one of all accesses that leave a core's own caches.
func (s *search) real(x *state, g int, loss uint64) bool {
	if s.d.allLevels {
		return true
	}
	static := slices.Clone(x.to)
	static[g] = s.d.loops.targets(schedule{})
	var saved int64
	for _, k := range s.byGroup[g] {
		saved += s.near(k, x.to) - s.near(k, static)
	}
	return 2*saved >= int64(loss)
}

// tooLittle reports whether saving this many remote accesses is not worth permuting
// group g.
func (s *search) tooLittle(g int, saves uint64) bool {
	return float64(saves) < max(s.d.worth(), s.d.opt.ScheduleGain*float64(s.d.loops.groups[g].all))
}

// near is the accesses to page k that leave a core's own caches and find it on
// their node, with chunks run where to says and the page where place says.
func (s *search) near(k int, to [][]int) int64 {
	home, _ := s.place(k, to)
	if home < 0 {
		return 0
	}
	n := s.found(s.d.of(s.d.wide, s.pages[k].page), home)
	for i := range s.pages[k].flows {
		f := &s.pages[k].flows[i]
		if node := to[f.group][f.slot]; node == home {
			n += f.wide
		} else if s.d.distances != nil {
			n += s.d.distances.near(f.wide, node, home)
		}
	}
	return int64(n)
}

// found is what of use by node finds a page on home, less the cost of the rest.
func (s *search) found(use []uint64, home int) (n uint64) {
	if s.d.distances == nil {
		return use[home]
	}
	for from, count := range use {
		n += s.d.distances.near(count, from, home)
	}
	return n
}

// prune leaves groups static for which permuting saves next to nothing, or only
// what the caches hold, the lightest first.
func (s *search) prune(x *state) *state {
	order := make([]int, len(s.byGroup))
	for g := range order {
		order[g] = g
	}
	all := func(g int) uint64 { return s.d.loops.groups[g].all }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all(a), all(b)) })
	for _, g := range order {
		if x.choice[g].static() {
			continue
		}
		if loss := s.loss(x, g); s.tooLittle(g, loss) || !s.real(x, g, loss) {
			x = s.with(x, g, schedule{})
		}
	}
	return x
}
