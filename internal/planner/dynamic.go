package planner

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/classify"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// What hands out its work while it runs gives each page to another thread in each
// run. Which node used which page in the profiled run says nothing of the next
// one; how much each node used of all allocations of the call stack does. So such
// accesses to a page are divided among the nodes as all of them are. A page that
// such work touches first may follow it: if it is left to that, its local accesses are
// those that the pages of its group and home have on average, and what other work does
// to it finds it on any node. Pages that others touch first are where they are, and how
// much of such work happened to be there in the profiled run says nothing. What is chance and how much of
// it, classify.FindChance says. Where it only guesses, some pages are placed as if
// it was wrong, see choice; the prediction is as if it was right.

// fineGrain keeps small numbers of accesses divisible among up to 64 nodes.
const fineGrain = 64

type partHome struct {
	classify.Part
	home int
}

type pagePart struct{ page, region int }

// dealt collects the accesses that are chance.
type dealt struct {
	d          *demand
	pages      map[pagePart]uint64
	nodes      map[classify.Part][]uint64
	local, all map[partHome]uint64
	wide       map[pagePart]uint64
}

func newDealt(d *demand) *dealt {
	return &dealt{d, map[pagePart]uint64{}, map[classify.Part][]uint64{}, map[partHome]uint64{}, map[partHome]uint64{}, map[pagePart]uint64{}}
}

func (c *dealt) keys(at pagePart) (classify.Part, partHome) {
	pg := &c.d.p.Pages[at.page]
	part := classify.Part{Region: at.region, Group: c.d.chance.Group[pg.Object]}
	return part, partHome{part, int(pg.Home)}
}

// add notes count accesses of r by a thread of node.
func (c *dealt) add(r *profile.Row, node int, count uint64) {
	at := pagePart{int(r.Page), int(r.Region)}
	part, h := c.keys(at)
	if c.nodes[part] == nil {
		c.nodes[part] = make([]uint64, c.d.n)
	}
	c.nodes[part][node] += count
	c.pages[at] += count
	c.all[h] += count
	if h.home == node {
		c.local[h] += count
	}
	c.d.dealt[r.Region] += count
	c.d.luck[c.d.chance.Evidence(int(r.Region))][r.Page] += count
}

// beyond notes what is chance of count accesses of r that leave a core's own caches,
// and returns the rest.
func (c *dealt) beyond(r *profile.Row, count uint64, repeats float64) (sure uint64) {
	if repeats == 1 || count == 0 {
		return count
	}
	sure = uint64(repeats * float64(count))
	c.wide[pagePart{int(r.Page), int(r.Region)}] += count - sure
	return sure
}

// even makes the nodes' use of a group equal where it differs by no more than it
// would if each of its chunks had been handed to one of these nodes at random:
// chi-square less than three standard deviations above its mean.
func even(nodes []uint64, chunks int) {
	all, users := float64(sum(nodes)), 0.0
	for _, w := range nodes {
		if w > 0 {
			users++
		}
	}
	var chi float64
	for _, w := range nodes {
		if w > 0 {
			off := float64(w)/all - 1/users
			chi += off * off * users * float64(chunks)
		}
	}
	if users < 2 || chi > users-1+3*math.Sqrt(2*(users-1)) {
		return
	}
	for n, w := range nodes {
		if w > 0 {
			nodes[n] = uint64(all / users)
		}
	}
}

// spread adds what was collected to the demand's tables: what is guessed to that
// of what is expected only.
func (c *dealt) spread() {
	for part, nodes := range c.nodes {
		if c.d.p.Regions[part.Region].Schedule == profile.Affine {
			c.d.byCPUs(nodes) // as it runs without that
		} else {
			even(nodes, c.d.chance.Chunks[part])
		}
	}
	c.d.tossed, c.d.dealtFirst, c.d.hands = make(map[int][]uint64), make([]bool, len(c.d.p.Pages)), c.nodes
	for i := range c.d.p.Pages {
		part, is := c.d.chance.FirstTouch(i)
		if c.d.dealtFirst[i] = is; is && c.nodes[part] != nil && c.d.chance.Evidence(part.Region) != classify.Guessed {
			c.d.tossed[i] = c.nodes[part]
		}
	}
	for at, count := range c.pages { // sums: the order does not matter
		c.divide(c.d.expected, at, count)
		if c.d.same != c.d.expected && c.d.chance.Evidence(at.region) != classify.Guessed {
			c.divide(c.d.same, at, count)
		}
	}
	for at, count := range c.wide {
		part, _ := c.keys(at)
		nodes, use := c.nodes[part], c.d.of(c.d.wide, at.page)
		for n, w := range nodes {
			use[n] += share(count, w, sum(nodes))
		}
	}
}

// divide adds count accesses to t as the nodes use all of their part, and to its
// drift by how much the local accesses to a page left at home differ from what its
// home then uses.
func (c *dealt) divide(t *table, at pagePart, count uint64) {
	part, h := c.keys(at)
	use, nodes := c.d.of(t.base, at.page), c.nodes[part]
	before := c.d.homeUse(at.page, h.home, use)
	rest, all, most := count, sum(nodes), 0
	for n, w := range nodes {
		its := share(count, w, all)
		use[n] += its
		rest -= its
		if w > nodes[most] {
			most = n
		}
	}
	use[most] += rest
	// Affine loops' pages followed them in this run only.
	if h.home >= 0 && c.d.dealtFirst[at.page] && c.d.p.Regions[at.region].Schedule != profile.Affine {
		t.drift[at.page] += int64(share(count, c.local[h], c.all[h])) - int64(c.d.homeUse(at.page, h.home, use)-before)
	}
}

// homeUse is what the home of a page is expected to use of it, of use by node; 0 where
// it has none. A page that handed-out work touches first has its home on any node that
// does such work.
func (d *demand) homeUse(page, home int, use []uint64) uint64 {
	if home < 0 {
		return 0
	}
	if w := d.tossed[page]; w != nil {
		return expectation(use, w)
	}
	return use[home]
}

// expectation is the mean of use over nodes of these weights.
func expectation(use, weight []uint64) (mean uint64) {
	all := sum(weight)
	for n, w := range weight {
		mean += share(use[n], w, all)
	}
	return mean
}

// choice puts in force the table to choose by: what is expected, but for pages that
// gain by being where they were used in this run, see free, whatever the schedules,
// and for pages that are left to a race, see races.
func (d *demand) choice() {
	d.chosen = d.expected
	races := d.races()
	if d.same != d.expected || len(races) > 0 {
		d.chosen = &table{base: slices.Clone(d.expected.base), drift: slices.Clone(d.expected.drift)}
		serial := d.serialFirst()
		for i := range d.p.Pages {
			if d.free(i, serial(&d.p.Pages[i])) {
				copy(d.of(d.chosen.base, i), d.of(d.same.base, i))
				d.chosen.drift[i] = d.same.drift[i]
			}
		}
		for i, nodes := range races {
			use := d.of(d.expected.use, i)
			d.chosen.drift[i] += int64(mean(use, nodes)) - int64(use[d.home[i]])
		}
		d.arrange(nil)
	}
	if d.distances != nil {
		d.chosen = &table{base: slices.Clone(d.chosen.base), drift: slices.Clone(d.chosen.drift), weighed: true}
		d.arrange(nil)
	}
	d.table = d.chosen
}

// races is the pages that threads of several nodes store to in the loop that touched
// them first, with these nodes. Who comes first there is often a matter of microseconds:
// in the next run the page may be on any of them, so it is not where it should be only
// because it happened to be in this one. (Where a barrier or a later instance of the
// loop decides it, being told costs the page nothing.) A prediction for pages that are
// left to first touch is of this run all the same.
func (d *demand) races() map[int][]int {
	stores := make([]uint64, len(d.p.Pages)) // by page, a bit for each node
	for i := range d.p.Rows {
		r := &d.p.Rows[i]
		pg := &d.p.Pages[r.Page]
		if r.Op == profile.Store && int(r.Region) == pg.Region && pg.Home >= 0 && !pg.Serial &&
			d.p.Regions[r.Region].Kind == profile.Loop && !d.p.Regions[r.Region].Dynamic {
			stores[r.Page] |= 1 << d.p.Threads[r.Thread].Node
		}
	}
	nodes := make(map[int][]int)
	for page, set := range stores {
		if bits.OnesCount64(set) < 2 || set&(1<<d.home[page]) == 0 {
			continue
		}
		for n := range d.n {
			if set&(1<<n) != 0 {
				nodes[page] = append(nodes[page], n)
			}
		}
	}
	return nodes
}

// free reports whether page i, whose use is guessed to be chance, should be where
// it was used in this run all the same. That is so where its home has nothing to
// do with its use: it was first touched serially, or on a node that is not among
// its users. If the guess is right, what is chance is as local there as anywhere,
// but what the main thread does to the page is not, and some nodes take more work
// than others: it must not lose more than half of what it gains if the guess is
// wrong, which it seldom is. Pages that one of their users touched first follow
// their work, and stay.
func (d *demand) free(i int, serial bool) bool {
	home, use := d.home[i], d.of(d.same.use, i)
	if home < 0 || d.luck[classify.Guessed][i] == 0 || !serial && use[home] > 0 {
		return false
	}
	best := d.best(use, home)
	gain := use[best] - min(use[best], d.same.stay[i])
	there := d.of(d.expected.use, i)[best]
	loss := d.expected.stay[i] - min(d.expected.stay[i], there)
	return 2*loss <= gain
}

// serialFirst tells whether serial code touched a page first.
func (d *demand) serialFirst() func(*profile.Page) bool {
	serial := access.SerialRegions(d.p)
	return func(pg *profile.Page) bool {
		return pg.Thread >= 0 && d.p.Threads[pg.Thread].Rank == 0 && (pg.Serial && pg.Region < 0 || pg.Region >= 0 && serial[pg.Region])
	}
}

// predict turns the figures of groups, by which they were chosen, into those that
// are expected.
func (d *demand) predict(groups []group) {
	d.table = d.expected
	renew := func(cells []cell) {
		for i := range cells {
			c := &cells[i]
			c.use, c.stay = d.page(c.profile), d.stay[c.profile]
			c.all = d.total(c.profile, d.n)
		}
	}
	for i := range groups {
		g := &groups[i]
		renew(g.cells)
		for k := range g.chosen {
			u := &g.chosen[k]
			u.gain = u.saves()
			renew(u.cells)
			u.before, _, u.all = d.totals(u.cells)
			u.after = d.evaluate(u, u.place)
		}
	}
}

// share is count*part/all, rounded down; part is at most all.
func share(count, part, all uint64) uint64 {
	hi, lo := bits.Mul64(count, part)
	q, _ := bits.Div64(hi, lo, max(1, all))
	return q
}

// dealtWork warns of work that is handed out while the program runs, where it
// makes a considerable part of the accesses.
func (d *demand) dealtWork(r *Result) []string {
	var all [classify.Different + 1]uint64
	var regions [classify.Different + 1][]int
	for i, count := range d.dealt {
		if e := d.chance.Evidence(i); count > 0 {
			all[e] += count
			regions[e] = append(regions[e], i)
		}
	}
	var list []string
	add := func(e classify.Evidence, what string, rest string) {
		if d.points(all[e]) >= 5 {
			list = append(list, fmt.Sprintf("%s (%.1f %% of the %s): %s", what, d.points(all[e]), d.counted(), rest))
		}
	}
	const luck = "which thread uses which page is chance, so placement can only spread or gather its data, and the prediction is an expected value"
	known := regions[classify.Known]
	add(classify.Known, fmt.Sprintf("OpenMP hands out the work of %s at run time", d.regionNames(known)), luck)
	add(classify.Different, fmt.Sprintf("other threads did the work of %s in each of the profiled runs", d.regionNames(regions[classify.Different])), luck)
	add(classify.Guessed, fmt.Sprintf("the work of %s looks handed out at run time, as by a thread pool", d.regionNames(regions[classify.Guessed])),
		fmt.Sprintf("if it is, which thread uses which page is chance, and %s remote is the expected value; if the same threads do the same work in each run: %s; to know, profile a second time and give both profiles to plan",
			units.FormatPercent(r.After.RemotePct()), units.FormatPercent(r.Same.RemotePct())))
	return append(list, d.tossedPages()...)
}

// tossedPages warns of pages that handed-out work touches first and other work uses.
func (d *demand) tossedPages() []string {
	var all uint64
	weight := make(map[int]uint64) // by region
	var regions []int
	for page := range d.tossed {
		r, sure := d.p.Pages[page].Region, sum(d.of(d.expected.use, page))
		for e := range d.luck {
			sure -= min(sure, d.luck[e][page])
		}
		if weight[r] == 0 && sure > 0 {
			regions = append(regions, r)
		}
		weight[r] += sure
		all += sure
	}
	if d.points(all) < 5 {
		return nil
	}
	slices.SortFunc(regions, func(a, b int) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), a-b) })
	names := d.regionName(regions[0])
	if more := len(regions) - 1; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf("handed-out work of %s touches pages first that other work uses (%.1f %% of the %s): in each run they begin on other nodes; the prediction is an expected value for those that the plan leaves to first touch",
		names, d.points(all), d.counted())}
}

// regionName is a region for a warning.
func (d *demand) regionName(i int) string {
	name := strings.TrimPrefix(clean(d.p.Regions[i].Name), "serial in ")
	switch {
	case d.chance.Tasks(i):
		return "tasks in " + name
	case d.p.Regions[i].Worksharing() && d.p.Regions[i].Schedule != profile.Affine:
		return "loop " + name + ", in a team inside a team or beside tasks,"
	case d.p.Regions[i].Worksharing():
		return "loop " + name
	}
	return name
}

// regionNames names the regions of list that hand out most work: the first, and
// others of at least a point.
func (d *demand) regionNames(list []int) string {
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(d.dealt[b], d.dealt[a]) })
	var names []string
	for i, x := range list {
		if i == 0 || d.points(d.dealt[x]) >= 1 && i < maxNamed {
			names = append(names, d.regionName(x))
		}
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// inAccesses turns the figures of r from the planner's units into accesses.
func (d *demand) inAccesses(r *Result) {
	if d.grain == 1 {
		return
	}
	to := func(v ...*uint64) {
		for _, x := range v {
			*x = (*x + d.grain/2) / d.grain
		}
	}
	for _, s := range []*Split{&r.Before, &r.PagesOnly, &r.After, &r.Same, &r.Best} {
		to(&s.Remote, &s.Known)
		for n := range s.Load {
			to(&s.Load[n])
		}
	}
	for i := range r.Decisions {
		x := &r.Decisions[i]
		to(&x.Seen, &x.Accesses, &x.Profiled, &x.Before, &x.After, &x.Best, &x.Serial, &x.Chance, &x.Huge, &x.Split)
	}
	for i := range r.Loops {
		to(&r.Loops[i].Accesses, &r.Loops[i].Before, &r.Loops[i].After, &r.Loops[i].Again, &r.Loops[i].Stolen)
	}
}
