package classify

import (
	"cmp"
	"fmt"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Part is the accesses of one region to all objects of one group, see
// access.Groups: what hands out its work gives the pages of such a group, not of
// one allocation, to the threads.
type Part struct{ Region, Group int }

// Chance tells how far the use of pages in one run speaks for the next one.
type Chance struct {
	// Group is the group of each object.
	Group []int
	// Chunks is the runs of adjacent pages with one user, by part judged.
	Chunks map[Part]int
	// Measured is true where further runs were compared.
	Measured bool
	// Missing is what each of them lacks, in their order.
	Missing []Missing
	repeat  map[Part]float64
	p       *profile.Profile
	// tasks is by region how OpenMP tasks run in it, see findTasks.
	tasks []tasks
}

// Missing is what a further run has no counterpart of, as shares in [0,1] of the
// accesses that may be chance: those to pages that it did not use in the region,
// and of these those of regions that it did not enter at all.
type Missing struct{ Pages, Regions float64 }

// Evidence is what says that a part is chance.
type Evidence int

// The kinds of evidence.
const (
	Guessed   Evidence = iota // the pages of one run look like it
	Known                     // OpenMP's runtime hands the work out
	Different                 // further runs were different
)

// Evidence is what says so of the parts of region that are chance.
func (c *Chance) Evidence(region int) Evidence {
	switch {
	case c.handedOut(region):
		return Known
	case c.Measured:
		return Different
	}
	return Guessed
}

// FindChance judges the rows of p that count. With further runs of the same
// program, what repeats is measured: where the pages of a part agree with those
// of another run as they agree with themselves, all of it does; where no more
// than any two pages of the part would, nothing does.
//
// A loop that the runtime knows to hand out its work is chance however many runs
// agree. Without further runs, so are pages that threads outside loops use in an
// order that looks like dealt cards: threads of a pool that take jobs from a
// queue. Irregular static parts, such as a hashed graph's, look the same; a
// second run tells them apart.
func FindChance(p *profile.Profile, again []*profile.Profile, counts func(*profile.Row) bool) *Chance {
	_, of := access.Groups(p)
	c := &Chance{Group: of, Chunks: make(map[Part]int), Measured: len(again) > 0, repeat: make(map[Part]float64), p: p, tasks: findTasks(p)}
	uses := c.uses(counts, c.Measured)
	for part, pages := range uses {
		owners := chunks(pages)
		if c.handedOut(part.Region) && !madeForThreads(pages) || !c.Measured && looksDealt(owners) {
			c.repeat[part] = 0
		}
		c.Chunks[part] = len(owners)
	}
	if c.Measured {
		c.measure(uses, again, counts)
	} else {
		c.complete(uses)
	}
	return c
}

// complete makes all that threads outside loops do to a group chance, where most
// of it is: a job calls several functions, each of which may use too few pages to
// look dealt by itself.
func (c *Chance) complete(uses map[Part][]pageUse) {
	all, dealt := make(map[int]uint64), make(map[int]uint64)
	for part, pages := range uses {
		if c.p.Regions[part.Region].Kind == profile.Loop {
			continue
		}
		_, is := c.repeat[part]
		for i := range pages {
			all[part.Group] += pages[i].all
			if is {
				dealt[part.Group] += pages[i].all
			}
		}
	}
	for part := range uses {
		if c.p.Regions[part.Region].Kind != profile.Loop && 2*dealt[part.Group] > all[part.Group] {
			c.repeat[part] = 0
		}
	}
}

// Repeats is the share, in [0,1], of the accesses of r that the same node makes
// in the next run; the others are made by any node that takes part.
func (c *Chance) Repeats(r *profile.Row) float64 {
	if !c.judged(r) {
		return 1
	}
	if share, ok := c.repeat[c.Part(r)]; ok {
		return share
	}
	return 1
}

// Part is the part that r is of.
func (c *Chance) Part(r *profile.Row) Part {
	return Part{int(r.Region), c.Group[c.p.Pages[r.Page].Object]}
}

// Any reports whether anything is chance.
func (c *Chance) Any() bool { return len(c.repeat) > 0 }

// judged reports whether chance can have a part in r: the main thread outside
// loops runs where it always does, but for the tasks that it takes.
func (c *Chance) judged(r *profile.Row) bool {
	return c.p.Pages[r.Page].Home != topo.Unknown &&
		(c.p.Regions[r.Region].Kind == profile.Loop || c.p.Threads[r.Thread].Rank != 0 || c.tasks[r.Region] == ofAll)
}

// pageUse is the accesses of one part to one page.
type pageUse struct {
	object, index int
	ranks         []rankUse
	nodes         []float64 // shares, they add up to 1
	all           uint64
}

type rankUse struct {
	rank  int
	count uint64
}

// uses collects the pages of each part that may be chance, in the order of
// allocation and address; every also those of static loops.
func (c *Chance) uses(counts func(*profile.Row) bool, every bool) map[Part][]pageUse {
	p := c.p
	type cell struct {
		part                  Part
		allocated, page, rank int
		row                   *profile.Row
	}
	allocated := allocationOrder(p)
	var cells []cell
	for i := range p.Rows {
		r := &p.Rows[i]
		x, g := &p.Regions[r.Region], &p.Pages[r.Page]
		if counts(r) && c.judged(r) && (every || x.Kind != profile.Loop || x.Dynamic) {
			cells = append(cells, cell{c.Part(r), allocated[g.Object], g.Index, p.Threads[r.Thread].Rank, r})
		}
	}
	slices.SortStableFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.part.Region, b.part.Region), cmp.Compare(a.part.Group, b.part.Group),
			cmp.Compare(a.allocated, b.allocated), cmp.Compare(a.page, b.page), cmp.Compare(a.rank, b.rank))
	})
	parts := make(map[Part][]pageUse)
	for _, x := range cells {
		r, g, list := x.row, &p.Pages[x.row.Page], parts[x.part]
		if last := len(list) - 1; last < 0 || list[last].object != g.Object || list[last].index != g.Index {
			list = append(list, pageUse{object: g.Object, index: g.Index, nodes: make([]float64, len(p.Run.Topology.Nodes))})
		}
		list[len(list)-1].add(p.Threads[r.Thread], r.Count)
		parts[x.part] = list
	}
	for _, list := range parts {
		for i := range list {
			for n := range list[i].nodes {
				list[i].nodes[n] /= float64(list[i].all)
			}
		}
	}
	return parts
}

// allocationOrder numbers the objects by thread and ordinal.
func allocationOrder(p *profile.Profile) []int {
	order := make([]int, len(p.Objects))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &p.Objects[a], &p.Objects[b]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	at := make([]int, len(order))
	for i, o := range order {
		at[o] = i
	}
	return at
}

func (u *pageUse) add(t profile.Thread, count uint64) {
	if last := len(u.ranks) - 1; last >= 0 && u.ranks[last].rank == t.Rank {
		u.ranks[last].count += count
	} else {
		u.ranks = append(u.ranks, rankUse{t.Rank, count})
	}
	u.nodes[t.Node] += float64(count)
	u.all += count
}

// nearlyMost is the share of the largest count from which on a thread uses a page
// as much as the one that uses it most: passes over a page differ by what the
// caches still held.
const nearlyMost = 0.8

// owner is the lowest rank that uses the page about most.
func (u *pageUse) owner() int {
	var most uint64
	for _, x := range u.ranks {
		most = max(most, x.count)
	}
	for _, x := range u.ranks {
		if float64(x.count) >= nearlyMost*float64(most) {
			return x.rank
		}
	}
	return -1
}

// chunk is a run of adjacent pages with one owner.
type chunk struct {
	owner    int
	accesses uint64
}

func chunks(pages []pageUse) []chunk {
	var list []chunk
	for i := range pages {
		o := pages[i].owner()
		if last := len(list) - 1; last < 0 || list[last].owner != o {
			list = append(list, chunk{owner: o})
		}
		list[len(list)-1].accesses += pages[i].all
	}
	return list
}

// madeForThreads reports whether each thread uses one object, in the order of the
// threads: buffers that were made for them, whoever gets which work.
func madeForThreads(pages []pageUse) bool {
	owner, objects := -1, 0
	for i := range pages {
		u := &pages[i]
		if i > 0 && u.object == pages[i-1].object {
			if u.owner() != owner {
				return false
			}
			continue
		}
		if u.owner() <= owner {
			return false
		}
		owner = u.owner()
		objects++
	}
	return objects >= dealtOwners
}

// The thresholds of looksDealt; with fewer chunks, owners or pairs nothing can be
// said. Cyclic and tiled parts have the same next owner nearly always, parts
// that go to and fro in half of all cases, dealt cards in one of owners-1. Block parts
// lie in the order of the threads, but for what other threads steal at the end.
// In runs of queues with 15 jobs and more, pigz's among them, 0.23 to 0.6 was in
// order, in runs of blocks of which some were stolen 0.89 to 0.95.
const (
	dealtOwners  = 4
	dealtChunks  = 10
	dealtPairs   = 5
	dealtSame    = 0.4 // share of pairs of chunks with one owner that one other follows
	dealtInOrder = 0.6 // share of the accesses to chunks that ascend or descend
)

// looksDealt reports whether the sequence of owners looks like chance. Two threads
// that take turns for a while, as two of a pool do whose others wait, count once.
func looksDealt(list []chunk) bool {
	var owners []int
	for _, c := range list {
		if n := len(owners); (n < 1 || owners[n-1] != c.owner) && (n < 2 || owners[n-2] != c.owner) {
			owners = append(owners, c.owner)
		}
	}
	if len(owners) < dealtChunks {
		return false
	}
	seen, next := make(map[int]int), make(map[[2]int]int)
	for i, o := range owners[1:] {
		seen[owners[i]]++
		next[[2]int{owners[i], o}]++
	}
	pairs, same := 0, 0
	for _, n := range seen {
		pairs += n * (n - 1) / 2
	}
	for _, n := range next {
		same += n * (n - 1) / 2
	}
	return len(seen) >= dealtOwners && pairs >= dealtPairs && float64(same) <= dealtSame*float64(pairs) && inOrder(list) <= dealtInOrder
}

// inOrder is the share of the accesses to the heaviest subsequence of chunks whose
// owners ascend, or descend.
func inOrder(list []chunk) float64 {
	up, down, all := make(map[int]uint64), make(map[int]uint64), uint64(0)
	var most uint64
	for _, c := range list {
		all += c.accesses
		var before, after uint64
		for o, w := range up {
			if o <= c.owner {
				before = max(before, w)
			}
		}
		for o, w := range down {
			if o >= c.owner {
				after = max(after, w)
			}
		}
		up[c.owner], down[c.owner] = before+c.accesses, after+c.accesses
		most = max(most, up[c.owner], down[c.owner])
	}
	return float64(most) / float64(all)
}

// agreement of the pages of a part between two runs, each page by its accesses:
// the chance that two accesses to it come from one node, one of them from each
// run (between), both from one run (within), and as if the second run had been
// dealt anew (chance).
type agreement struct{ between, within, chance, all float64 }

// repeats is the share of the use that repeats.
func (a *agreement) repeats() float64 {
	room := a.within - a.chance
	if room <= 0.02*a.all {
		return 1 // one node's, or all alike: it does not matter who takes a page
	}
	share := (a.between - a.chance) / room
	if share > 0.95 {
		return 1 // what caches hold differs as much
	}
	return max(0, share)
}

// measure compares p, whose pages are mine, with further runs.
func (c *Chance) measure(mine map[Part][]pageUse, again []*profile.Profile, counts func(*profile.Row) bool) {
	sums := make(map[Part]*agreement)
	names, objects := regionNames(c.p), objectNames(c.p)
	for part := range mine {
		sums[part] = &agreement{}
	}
	for _, q := range again {
		_, of := access.Groups(q)
		other := byName(&Chance{Group: of, p: q, tasks: findTasks(q)}, counts)
		var all, pages, regions float64
		for part, uses := range mine {
			from := other[names[part.Region]]
			total, missing := sums[part].add(uses, from, objects)
			all += total
			pages += missing
			if from == nil {
				regions += total
			}
		}
		all = max(1, all)
		c.Missing = append(c.Missing, Missing{pages / all, regions / all})
	}
	for part, sum := range sums {
		if _, known := c.repeat[part]; known {
			continue
		}
		if share := sum.repeats(); share < 1 {
			c.repeat[part] = share
		}
	}
}

type pageName struct {
	object string
	index  int
}

// byName is the use of the pages of another run by names that both runs have.
func byName(c *Chance, counts func(*profile.Row) bool) map[string]map[pageName][]float64 {
	regions, objects := regionNames(c.p), objectNames(c.p)
	list := make(map[string]map[pageName][]float64)
	for part, pages := range c.uses(counts, true) {
		name := regions[part.Region]
		if list[name] == nil {
			list[name] = make(map[pageName][]float64)
		}
		for i := range pages {
			list[name][pageName{objects[pages[i].object], pages[i].index}] = pages[i].nodes
		}
	}
	return list
}

// add compares the pages of a part with those of the same region in another run.
// A page that the other run does not have agrees by chance. It returns the
// accesses to all pages and to those that the other run does not have.
func (a *agreement) add(pages []pageUse, other map[pageName][]float64, objects []string) (all, missing float64) {
	mean := make([]float64, len(pages[0].nodes))
	for i := range pages {
		w := float64(pages[i].all)
		all += w
		from := other[pageName{objects[pages[i].object], pages[i].index}]
		if from == nil {
			from = pages[i].nodes
			missing += w
		}
		for n := range mean {
			mean[n] += w * from[n]
		}
	}
	for n := range mean {
		mean[n] /= all
	}
	a.all += all
	for i := range pages {
		u, w := &pages[i], float64(pages[i].all)
		from := other[pageName{objects[u.object], u.index}]
		a.chance += w * dot(u.nodes, mean)
		if from == nil {
			a.between += w * dot(u.nodes, mean)
			a.within += w * dot(u.nodes, u.nodes)
		} else {
			a.between += w * dot(u.nodes, from)
			a.within += w * (dot(u.nodes, u.nodes) + dot(from, from)) / 2
		}
	}
	return all, missing
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// regionNames and objectNames say of each region and object what is the same in
// every run of the program: code by module and offset, allocations by call stack
// and ordinal.
func regionNames(p *profile.Profile) []string {
	names := make([]string, len(p.Regions))
	for i := range p.Regions {
		r := &p.Regions[i]
		names[i] = fmt.Sprintf("%s|%s|%s|%d|%d|%d|%s", r.Kind, r.Name, modulePath(p, r.Code.Module), r.Code.Offset, r.Site.Offset, r.Line, r.Thread)
	}
	return names
}

func objectNames(p *profile.Profile) []string {
	sites := make([]string, len(p.Sites))
	for i, s := range p.Sites {
		for _, f := range s.Frames {
			sites[i] += fmt.Sprintf("|%s+%d", modulePath(p, f.Module), f.Offset)
		}
	}
	names := make([]string, len(p.Objects))
	for i := range p.Objects {
		o := &p.Objects[i]
		names[i] = fmt.Sprintf("%s|%s|%s|%d|%d|%d", o.Kind, o.Symbol, modulePath(p, o.Module), o.Offset, o.Rank, o.Ordinal)
		if o.Site >= 0 {
			names[i] += sites[o.Site]
		}
	}
	return names
}

func modulePath(p *profile.Profile, m int) string {
	if m < 0 || m >= len(p.Modules) {
		return ""
	}
	return cmp.Or(p.Modules[m].BuildID, p.Modules[m].Path)
}
