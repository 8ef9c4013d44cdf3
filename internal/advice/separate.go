package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// fewPages is the most pages of an object that is taken for slots of threads rather
// than for an array that loops divide.
const fewPages = 4

// separate finds pages that objects of different nodes share: globals side by side,
// and small objects that threads of several nodes write.
func (f *finder) separate() []Item {
	return append(f.neighbours(), f.slots()...)
}

// frame is a page of a module's data.
type frame struct {
	module int
	page   uint64
}

// neighbours finds globals whose common pages are used from different nodes.
func (f *finder) neighbours() (items []Item) {
	frames := make(map[frame]map[int]*page) // by group
	loops := make(map[frame]map[int]float64)
	f.each(func(r *profile.Row) {
		pg := &f.p.Pages[r.Page]
		o := &f.p.Objects[pg.Object]
		if o.Kind != profile.Global {
			return
		}
		at := frame{o.Module, (o.Offset-uint64(o.Head))/units.PageSize + uint64(pg.Index)}
		g := f.of[pg.Object]
		if frames[at] == nil {
			frames[at], loops[at] = make(map[int]*page), make(map[int]float64)
		}
		f.pageIn(frames[at], g, r).use[f.plan.Node(r)] += float64(r.Count)
		loops[at][int(r.Region)] += float64(r.Count)
	})
	type pair struct{ a, b int }
	found := make(map[pair]*Item)
	weight := make(map[pair]map[int]float64)
	for at, parts := range frames {
		if len(parts) < 2 {
			continue
		}
		var groups []int
		saved := 0.0
		for g, x := range parts {
			groups = append(groups, g)
			most, all := x.most()
			saved += x.before - (all - most)
		}
		slices.Sort(groups)
		k := pair{groups[0], groups[1]}
		if found[k] == nil {
			found[k], weight[k] = &Item{Kind: Separate}, make(map[int]float64)
			for _, g := range groups {
				found[k].Objects = append(found[k].Objects, f.groups[g].Name)
			}
		}
		found[k].saved += saved
		for i, w := range loops[at] {
			weight[k][i] += w
			for _, g := range groups {
				found[k].use(i, g)
			}
		}
	}
	var keys []pair
	for k := range found {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	for _, k := range keys {
		item := *found[k]
		if f.taken[k.a] || f.taken[k.b] || !f.matters(item.saved) {
			continue
		}
		item.Loops = f.loopsOf(weight[k])
		item.Why = fmt.Sprintf("%s share a page, and different nodes use them: a page is on one node.", strings.Join(item.Objects, " and "))
		item.Respect = []string{}
		var b strings.Builder
		for _, g := range []int{k.a, k.b} {
			o := &f.p.Objects[f.groups[g].Objects[0]]
			fmt.Fprintf(&b, "%s gets __attribute__((aligned(%d))), and a size of whole pages (%v now)\n", o.Symbol, units.PageSize, units.Bytes(o.Bytes))
		}
		item.Changes = []Change{{Where: "where they are declared", Text: b.String()}}
		items = append(items, item)
	}
	return items
}

// slots finds small objects that threads of several nodes write in parallel code.
func (f *finder) slots() (items []Item) {
	serial := access.SerialCode(f.p)
	far, writers := make([]float64, len(f.groups)), make([]map[int]bool, len(f.groups))
	loops := make([]map[int]float64, len(f.groups))
	f.each(func(r *profile.Row) {
		g := f.of[f.p.Pages[r.Page].Object]
		if serial(r) || !f.small(g) || !f.ofProgram(g) {
			return
		}
		if writers[g] == nil {
			writers[g], loops[g] = make(map[int]bool), make(map[int]float64)
		}
		far[g] += float64(f.plan.Remote(r))
		loops[g][int(r.Region)] += float64(r.Count)
		if r.Op == profile.Store {
			writers[g][int(f.p.Threads[r.Thread].Node)] = true
		}
	})
	for g := range f.groups {
		if f.taken[g] || len(writers[g]) < 2 || !f.matters(far[g]) {
			continue
		}
		x := &f.groups[g]
		item := Item{Kind: Separate, Objects: []string{x.Name}, Loops: f.loopsOf(loops[g]), saved: far[g], AtMost: true}
		item.Why = fmt.Sprintf("Threads of %d nodes write to the same few pages of %s. If each thread has a slot of its own there, pad the slots to whole pages, or give each thread memory of its own; if all of them write the same data, no placement and no padding helps.", len(writers[g]), x.Name)
		item.Respect = []string{"Slots are found by the thread's number alone."}
		item.Changes = []Change{{Where: "where " + x.Name + " is declared or allocated", Text: fmt.Sprintf(
			"struct slot { /* what it holds now */ } __attribute__((aligned(%d))); // one a thread\n", units.PageSize)}}
		items = append(items, item)
	}
	return items
}

// small reports whether group g is objects of a few pages, or parts of pages.
func (f *finder) small(g int) bool {
	o := &f.p.Objects[f.groups[g].Objects[0]]
	switch o.Kind {
	case profile.Small:
		return true
	case profile.Heap, profile.Global, profile.Mapping:
		return units.Bytes(o.Bytes).Pages() <= fewPages
	}
	return false
}
