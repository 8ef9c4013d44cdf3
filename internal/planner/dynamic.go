package planner

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"numaopt/internal/classify"
	"numaopt/internal/profile"
)

// What hands out its work while it runs gives each page to another thread in each
// run. Which node used which page in the profiled run says nothing of the next
// one; how much each node used of all allocations of the call stack does. So such
// accesses to a page are divided among the nodes as all of them are. A page that
// is left to first touch may follow its work: its local accesses are those that
// the pages of its group and home have on average. What is chance and how much of
// it, classify.FindChance says.

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
}

func newDealt(d *demand) *dealt {
	return &dealt{d, map[pagePart]uint64{}, map[classify.Part][]uint64{}, map[partHome]uint64{}, map[partHome]uint64{}}
}

func (c *dealt) keys(at pagePart) (classify.Part, partHome) {
	pg := &c.d.p.Pages[at.page]
	part := classify.Part{Region: at.region, Group: c.d.chance.Group[pg.Object]}
	return part, partHome{part, int(pg.Home)}
}

// add notes count accesses of r by a thread of node.
func (c *dealt) add(r *profile.Row, node int, count uint64) {
	at := pagePart{r.Page, r.Region}
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
	c.d.luck[r.Page] += count
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

// spread adds what was collected to the demand's use and stay.
func (c *dealt) spread() {
	for part, nodes := range c.nodes {
		even(nodes, c.d.chance.Chunks[part])
	}
	for at, count := range c.pages { // sums: the order does not matter
		part, h := c.keys(at)
		use := c.d.page(at.page)
		nodes := c.nodes[part]
		rest, all, most := count, sum(nodes), 0
		for n, w := range nodes {
			part := share(count, w, all)
			use[n] += part
			rest -= part
			if w > nodes[most] {
				most = n
			}
		}
		use[most] += rest
		c.d.stay[at.page] += share(count, c.local[h], c.all[h])
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
func (d *demand) dealtWork() []string {
	var order []int
	for i, count := range d.dealt {
		if d.points(count) >= 5 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.dealt[b], d.dealt[a]) })
	var list []string
	for _, i := range order[:min(len(order), maxNamed)] {
		list = append(list, fmt.Sprintf("%s (%.1f %% of the %s): which thread uses which page is chance, so placement can only spread or gather its data, and the prediction is an expected value%s",
			d.dealtBy(&d.p.Regions[i]), d.points(d.dealt[i]), d.counted(), d.secondRun(&d.p.Regions[i])))
	}
	return list
}

// dealtBy says how it is known that the work of r is handed out.
func (d *demand) dealtBy(r *profile.Region) string {
	switch {
	case d.chance.Measured:
		return fmt.Sprintf("the work of %s goes to other threads in each run", clean(r.Name))
	case r.Dynamic:
		return fmt.Sprintf("loop %s hands out its work dynamically", clean(r.Name))
	}
	return fmt.Sprintf("the work of %s looks handed out at run time, as by a thread pool", clean(r.Name))
}

// secondRun is what settles a guess from one run.
func (d *demand) secondRun(r *profile.Region) string {
	if d.chance.Measured || r.Dynamic {
		return ""
	}
	return "; to know, profile a second time and give both profiles to plan"
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
	for _, s := range []*Split{&r.Before, &r.After, &r.Best} {
		to(&s.Remote, &s.Known)
		for n := range s.Load {
			to(&s.Load[n])
		}
	}
	for i := range r.Decisions {
		x := &r.Decisions[i]
		to(&x.Accesses, &x.Before, &x.After, &x.Best, &x.Serial, &x.Chance)
	}
}
