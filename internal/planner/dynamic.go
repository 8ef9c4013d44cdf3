package planner

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

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

// spread adds what was collected to the demand's use, and to its drift by how much
// the local accesses to a page left at home differ from what its home then uses.
func (c *dealt) spread() {
	for part, nodes := range c.nodes {
		even(nodes, c.d.chance.Chunks[part])
	}
	for at, count := range c.pages { // sums: the order does not matter
		part, h := c.keys(at)
		use := c.d.page(at.page)
		before := uint64(0)
		if h.home >= 0 {
			before = use[h.home]
		}
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
		if h.home >= 0 {
			c.d.drift[at.page] += int64(share(count, c.local[h], c.all[h])) - int64(use[h.home]-before)
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
func (d *demand) dealtWork() []string {
	order := make([]int, 0, len(d.dealt))
	var loops, rest uint64
	for i, count := range d.dealt {
		if d.byRuntime(i) {
			loops += count
		} else {
			rest += count
		}
		if d.points(count) >= 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.dealt[b], d.dealt[a]) })
	var list []string
	add := func(count uint64, byRuntime bool, what, cure string) {
		if d.points(count) < 5 {
			return
		}
		var names []string
		for _, i := range order {
			if d.byRuntime(i) == byRuntime && len(names) < maxNamed {
				names = append(names, strings.TrimPrefix(clean(d.p.Regions[i].Name), "serial in "))
			}
		}
		list = append(list, fmt.Sprintf(what+" (%.1f %% of the %s): which thread uses which page is chance, so placement can only spread or gather its data, and the prediction is an expected value%s",
			strings.Join(names, ", "), d.points(count), d.counted(), cure))
	}
	add(loops, true, "loop %s hands out its work dynamically", "")
	if d.chance.Measured {
		add(rest, false, "other threads do the work of %s in each run", "")
	} else {
		add(rest, false, "the work of %s looks handed out at run time, as by a thread pool", "; to know, profile a second time and give both profiles to plan")
	}
	return list
}

// byRuntime reports whether what is chance in region i is known from OpenMP's
// runtime, not from the pages.
func (d *demand) byRuntime(i int) bool { return d.p.Regions[i].Dynamic && !d.chance.Measured }

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
	for _, s := range []*Split{&r.Before, &r.PagesOnly, &r.After, &r.Best} {
		to(&s.Remote, &s.Known)
		for n := range s.Load {
			to(&s.Load[n])
		}
	}
	for i := range r.Decisions {
		x := &r.Decisions[i]
		to(&x.Accesses, &x.Profiled, &x.Before, &x.After, &x.Best, &x.Serial, &x.Chance)
	}
	for i := range r.Loops {
		to(&r.Loops[i].Accesses, &r.Loops[i].Before, &r.Loops[i].After)
	}
}
