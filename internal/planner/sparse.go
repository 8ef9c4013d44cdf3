package planner

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Of a page with one sample the node that made it would be the best one, by chance; a
// plan of such pages promises much and keeps nothing. So where a profile is sampled,
// neighbouring pages of an object that are on one node are taken together until they
// have enoughSamples, and their samples are spread over them evenly: what holds for
// all of them stays, what tells one from the other is gone.

// enoughSamples is how many samples of accesses that count say which node uses
// something most, if that is so by more than sampleGain of them: the difference of two
// equal shares of a quarter has a standard deviation of 0.09.
const (
	enoughSamples = 64
	sampleGain    = 0.25
)

// maxSpread bounds the rows that spreading makes.
const maxSpread = 20_000_000

// sparse says of an object how many neighbouring pages are planned alike, 1 each for
// itself.
type sparse struct{ object, pages, samples, together int }

// windows is the objects whose pages have too few samples of accesses that count.
func windows(p *profile.Profile, counts func(*profile.Row) bool) []sparse {
	list := make([]sparse, len(p.Objects))
	for i := range p.Pages {
		list[p.Pages[i].Object].pages++
	}
	for i := range p.Rows {
		if r := &p.Rows[i]; counts(r) {
			list[p.Pages[r.Page].Object].samples += int(r.Count / p.Run.Period)
		}
	}
	for o := range list {
		x := &list[o]
		x.object, x.together = o, 1
		if each := enoughSamples * x.pages / max(1, x.samples); each > 1 && x.samples > 0 {
			x.together = 1 << bits.Len(uint(each-1))
		}
	}
	return slices.DeleteFunc(list, func(x sparse) bool { return x.together == 1 })
}

// spread is p with the samples of objects in list spread over neighbouring pages with
// the same home. Sums by object, thread, region, operation, level and home stay.
func spread(p *profile.Profile, list []sparse) *profile.Profile {
	together := make([]int, len(p.Objects))
	for _, x := range list {
		together[x.object] = x.together
	}
	type run struct{ object, home, window int }
	var order []int // pages to take together
	for i := range p.Pages {
		if together[p.Pages[i].Object] > 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return p.Pages[a].Index - p.Pages[b].Index })
	pages, of := make(map[run][]int), make(map[int]run)
	before := make(map[run]int) // pages of an object on a node, seen so far
	for _, i := range order {
		r := run{object: p.Pages[i].Object, home: int(p.Pages[i].Home)}
		n := before[r]
		before[r] = n + 1
		r.window = n / together[r.object]
		pages[r], of[i] = append(pages[r], i), r
	}
	type key struct {
		run
		thread, region int
		op             profile.Op
		level          profile.Level
	}
	sums := make(map[key]*profile.Row)
	var keys []key
	q := *p
	q.Rows = nil
	for _, r := range p.Rows {
		if together[p.Pages[r.Page].Object] <= 1 {
			q.Rows = append(q.Rows, r)
			continue
		}
		k := key{of[int(r.Page)], int(r.Thread), int(r.Region), r.Op, r.Level}
		s := sums[k]
		if s == nil {
			s = &profile.Row{Thread: r.Thread, Region: r.Region, Op: r.Op, Level: r.Level, First: r.First, Last: r.Last}
			sums[k] = s
			keys = append(keys, k)
		}
		s.Count, s.Latency = s.Count+r.Count, s.Latency+r.Latency
		s.First, s.Last = min(s.First, r.First), max(s.Last, r.Last)
	}
	slices.SortStableFunc(keys, func(a, b key) int { // rows of a page, thread and region side by side
		return cmp.Or(cmp.Compare(pages[a.run][0], pages[b.run][0]), a.thread-b.thread, a.region-b.region, int(a.op)-int(b.op))
	})
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && keys[n].run == keys[0].run && keys[n].thread == keys[0].thread && keys[n].region == keys[0].region && keys[n].op == keys[0].op {
			n++
		}
		at := pages[keys[0].run]
		for i, page := range at {
			part := func(count uint64) uint64 {
				return share(count, uint64(i+1), uint64(len(at))) - share(count, uint64(i), uint64(len(at)))
			}
			for _, k := range keys[:n] {
				r := *sums[k]
				r.Page, r.Count, r.Latency = int32(page), part(r.Count), part(r.Latency)
				if r.Count > 0 {
					q.Rows = append(q.Rows, r)
				}
			}
		}
		keys = keys[n:]
	}
	return &q
}

// dense is p with enough samples for each page to plan it by, and what to say where
// they are those of its neighbours. Accesses of all levels count where fewer than
// minDRAM samples are of DRAM.
func dense(p *profile.Profile, minDRAM uint64) (*profile.Profile, string) {
	if p.Run.Period <= 1 {
		return p, ""
	}
	dram := uint64(0)
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Level == profile.DRAM && p.Pages[r.Page].Home != topo.Unknown {
			dram += r.Count
		}
	}
	list := windows(p, func(r *profile.Row) bool { return r.Level == profile.DRAM || dram < minDRAM*p.Run.Period })
	rows, samples, all, most := 0, 0, 0, 1
	for _, x := range list {
		rows += min(x.samples, enoughSamples) * x.pages
		samples, all, most = samples+x.samples, all+x.pages, max(most, x.together)
	}
	if len(list) == 0 || samples == 0 {
		return p, ""
	}
	few := fmt.Sprintf("with a period of %d %d pages have %.2g samples each", p.Run.Period, all, float64(samples)/float64(all))
	if rows > maxSpread {
		return p, few + ": which node uses a page most is often luck; profile with a smaller --period"
	}
	return spread(p, list), fmt.Sprintf("%s, so up to %d neighbouring pages are planned alike: a smaller --period tells them apart", few, most)
}
