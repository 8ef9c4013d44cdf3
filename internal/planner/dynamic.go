package planner

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"numaopt/internal/profile"
)

// A loop that hands out its work while it runs gives each page to another thread
// in each run. Which node used which page in the profiled run says nothing of
// the next one; how much each node used of the object does. So the accesses of
// such a loop to a page are divided among the nodes as its accesses to the whole
// object are. A page that is left to first touch may follow its loop: its local
// accesses are those that the pages of its object and home have on average.

// fineGrain keeps small numbers of accesses divisible among up to 64 nodes.
const fineGrain = 64

func grainOf(p *profile.Profile) uint64 {
	if slices.ContainsFunc(p.Regions, func(r profile.Region) bool { return r.Dynamic }) {
		return fineGrain
	}
	return 1
}

type loopObject struct{ region, object int }

type loopHome struct {
	loopObject
	home int
}

// chance collects the accesses of dynamic loops.
type chance struct {
	d          *demand
	pages      map[[2]int]uint64 // page, region
	nodes      map[loopObject][]uint64
	local, all map[loopHome]uint64
}

func newChance(d *demand) *chance {
	return &chance{d, map[[2]int]uint64{}, map[loopObject][]uint64{}, map[loopHome]uint64{}, map[loopHome]uint64{}}
}

func (c *chance) keys(page, region int) (loopObject, loopHome) {
	pg := &c.d.p.Pages[page]
	o := loopObject{region, pg.Object}
	return o, loopHome{o, int(pg.Home)}
}

func (c *chance) add(r *profile.Row, node int) {
	o, h := c.keys(r.Page, r.Region)
	if c.nodes[o] == nil {
		c.nodes[o] = make([]uint64, c.d.n)
	}
	c.nodes[o][node] += r.Count
	c.pages[[2]int{r.Page, r.Region}] += r.Count
	c.all[h] += r.Count
	if h.home == node {
		c.local[h] += r.Count
	}
}

// even makes the nodes' use of an object equal where it differs by no more than
// it would if each of its pages had been handed to one of these nodes at random:
// chi-square more than three standard deviations above its mean.
func even(nodes []uint64, pages int) {
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
			chi += off * off * users * float64(pages)
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
func (c *chance) spread() {
	pages := map[loopObject]int{}
	for at := range c.pages {
		o, _ := c.keys(at[0], at[1])
		pages[o]++
	}
	for o, nodes := range c.nodes {
		even(nodes, pages[o])
	}
	for at, count := range c.pages { // sums: the order does not matter
		o, h := c.keys(at[0], at[1])
		use := c.d.page(at[0])
		count *= c.d.grain
		rest, all, most := count, sum(c.nodes[o]), 0
		for n, w := range c.nodes[o] {
			part := share(count, w, all)
			use[n] += part
			rest -= part
			if w > c.nodes[o][most] {
				most = n
			}
		}
		use[most] += rest
		c.d.stay[at[0]] += share(count, c.local[h], c.all[h])
	}
}

// share is count*part/all, rounded down; part is at most all.
func share(count, part, all uint64) uint64 {
	hi, lo := bits.Mul64(count, part)
	q, _ := bits.Div64(hi, lo, max(1, all))
	return q
}

// dynamicLoops warns of loops that hand out their work while they run, where
// they make a considerable part of the accesses.
func (d *demand) dynamicLoops() []string {
	var order []int
	for i, count := range d.dynamic {
		if d.points(count) >= 5 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.dynamic[b], d.dynamic[a]) })
	var list []string
	for _, i := range order[:min(len(order), maxNamed)] {
		list = append(list, fmt.Sprintf("loop %s hands out its work dynamically (%.1f %% of the %s): which thread uses which page is chance, so placement can only spread or gather its data, and the prediction is an expected value",
			clean(d.p.Regions[i].Name), d.points(d.dynamic[i]), d.counted()))
	}
	return list
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
		to(&x.Accesses, &x.Before, &x.After, &x.Best, &x.Serial)
	}
}
