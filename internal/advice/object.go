package advice

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// loopsOf is the names of the regions that make most of the accesses that weight
// counts, four at most.
func (f *finder) loopsOf(weight map[int]float64) (list []string) {
	var order []int
	for i := range weight {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	for _, i := range order {
		if name := f.region(i); len(list) < 4 && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// page is the accesses to a page, or to a part of one, by node, and how many are remote
// with the plan.
type page struct {
	use    []float64
	before float64
}

// pageOf is the page of r in pages, with r's remote accesses.
func (f *finder) pageOf(pages map[int]*page, r *profile.Row) *page { return f.pageIn(pages, r.Page, r) }

// pageIn is the same under another number.
func (f *finder) pageIn(pages map[int]*page, number int, r *profile.Row) *page {
	x := pages[number]
	if x == nil {
		x = &page{use: make([]float64, f.n)}
		pages[number] = x
	}
	x.before += float64(f.plan.Remote(r))
	return x
}

// most is the accesses by the node that makes most, and by all.
func (x *page) most() (most, all float64) {
	for _, c := range x.use {
		most, all = max(most, c), all+c
	}
	return most, all
}

// initial tells for each region whether it is over before the computation: code of
// the main thread outside loops, and loops that are entered once.
func (f *finder) initial() []bool {
	is := access.SerialRegions(f.p)
	for i := range is {
		r := &f.p.Regions[i]
		is[i] = is[i] || r.Kind == profile.Loop && r.Entries == 1 && r.Invocations <= 1
	}
	return is
}

// alikeShare is the share of a page's reads, in [0,1], that no node may exceed for the
// page to count as used by all alike: above it the page has a good place.
const alikeShare = 0.75

// replicate finds objects that are only read once the program has begun, from all
// nodes alike.
func (f *finder) replicate() (items []Item) {
	initial := f.initial()
	written, saved := make([]bool, len(f.groups)), make([]float64, len(f.groups))
	loops := make([]map[int]float64, len(f.groups))
	pages := make(map[int]*page)
	for i := range f.plan.Profile.Rows {
		r := &f.plan.Profile.Rows[i]
		g := f.of[f.p.Pages[r.Page].Object]
		if initial[r.Region] {
			continue
		}
		if r.Op == profile.Store {
			written[g] = true
		} else if f.plan.Counts(r) {
			f.pageOf(pages, r).use[f.plan.Node(r)] += float64(r.Count)
			if loops[g] == nil {
				loops[g] = make(map[int]float64)
			}
			loops[g][r.Region] += float64(r.Count)
		}
	}
	for i, x := range pages {
		if most, all := x.most(); most <= alikeShare*all {
			saved[f.of[f.p.Pages[i].Object]] += x.before
		}
	}
	for g := range f.groups {
		kind := f.groups[g].Kind
		if f.taken[g] || written[g] || !f.matters(saved[g]) || kind != profile.Heap && kind != profile.Global && kind != profile.Mapping {
			continue
		}
		f.taken[g] = true
		bytes := f.groups[g].Bytes
		item := Item{Kind: Replicate, Objects: []string{f.groups[g].Name}, Loops: f.loopsOf(loops[g]), saved: saved[g]}
		for region := range loops[g] {
			item.use(region, g)
		}
		item.Why = fmt.Sprintf("%s (%v) is only read once it is filled, and threads of several nodes read the same pages: a copy for each of the %d nodes makes these reads local, for %v more memory.",
			f.groups[g].Name, bytes, f.n, bytes*units.Bytes(f.n-1))
		item.Respect = []string{"Nothing writes to it after the copies are made; --only and other inputs may hide code that does."}
		f.replicateText(&item, g)
		items = append(items, item)
	}
	return items
}

// replicateText prints how a C program makes and finds the copies.
func (f *finder) replicateText(item *Item, g int) {
	o := &f.p.Objects[f.groups[g].Objects[0]]
	if len(f.groups[g].Objects) > 1 {
		item.Notes = append(item.Notes, fmt.Sprintf("These are %d allocations; each gets its copies.", len(f.groups[g].Objects)))
	}
	name := o.Symbol
	if v := f.opt.Shapes[f.groups[g].Objects[0]].Variable; v != "" {
		name = v
	}
	if !isIdentifier(name) {
		item.Notes = append(item.Notes, fmt.Sprintf("The variable behind %s is not known; the text calls it data.", f.groups[g].Name))
		name = "data"
	}
	for i := range f.p.Regions {
		r := &f.p.Regions[i]
		if slices.Contains(item.Loops, f.region(i)) && languageOf(r.File) == Fortran {
			item.Changes = append(item.Changes, Change{Where: "once it is filled", Text: fmt.Sprintf(
				"! for n = 0, numaopt_nodes() - 1: d = numaopt_bind(%d_c_size_t, n), numaopt_alloc(d, report),\n! copy %s there; in the loops read the copy of numaopt_node()\n", o.Bytes, name)})
			return
		}
	}
	var b lines
	b.add("static __typeof__(&%[1]s[0]) %[1]s_of[NUMAOPT_MAX_NODES];", name)
	item.Changes = append(item.Changes, Change{Where: fmt.Sprintf("at file scope, after the declaration of %s", name), Text: "#include <numaopt.h>\n#include <string.h>\n" + b.String()})
	b = lines{}
	b.open("for (int n = 0; n < numaopt_nodes(); n++) {")
	b.add("numaopt_dist d = numaopt_bind(%d, n);", o.Bytes)
	b.add("%[1]s_of[n] = (__typeof__(%[1]s_of[n]))numaopt_alloc(&d, NULL);", name)
	b.add("memcpy(%[1]s_of[n], %[1]s, %[2]d);", name, o.Bytes)
	b.close("}")
	item.Changes = append(item.Changes, Change{Where: "once it is filled", Text: b.String()},
		Change{Where: "in the parallel region of " + strings.Join(item.Loops, ", "), Text: fmt.Sprintf("__typeof__(%[1]s[0]) *%[1]s = %[1]s_of[numaopt_node()]; // once a thread\n",
			name)})
}

// initialise finds what the main thread fills and a plan cannot place, although each
// page is mostly used from one node: stacks, allocations below a page.
func (f *finder) initialise() (items []Item) {
	serial := access.SerialCode(f.p)
	pages := make(map[int]*page)
	loops := make([]map[int]float64, len(f.groups))
	f.each(func(r *profile.Row) {
		pg := &f.p.Pages[r.Page]
		if f.plan.Placeable(pg.Object) || !pg.Serial || f.p.Objects[pg.Object].Kind == profile.Image {
			return
		}
		x := f.pageOf(pages, r)
		if serial(r) {
			return // goes with the initialisation
		}
		x.use[f.p.Threads[r.Thread].Node] += float64(r.Count)
		if g := f.of[pg.Object]; loops[g] == nil {
			loops[g] = map[int]float64{r.Region: float64(r.Count)}
		} else {
			loops[g][r.Region] += float64(r.Count)
		}
	})
	saved := make([]float64, len(f.groups))
	places := make([]map[int]int, len(f.groups))
	for i, x := range pages {
		most, all := x.most()
		g := f.of[f.p.Pages[i].Object]
		saved[g] += max(0, x.before-(all-most))
		if at := f.p.Pages[i].Place; at >= 0 {
			if places[g] == nil {
				places[g] = make(map[int]int)
			}
			places[g][at]++
		}
	}
	for g := range f.groups {
		if f.taken[g] || !f.ofProgram(g) || !f.matters(saved[g]) {
			continue
		}
		f.taken[g] = true
		x := &f.groups[g]
		item := Item{Kind: Initialise, Objects: []string{x.Name}, Loops: f.loopsOf(loops[g]), saved: saved[g]}
		for region := range loops[g] {
			item.use(region, g)
		}
		at := f.firstTouch(places[g])
		what := fmt.Sprintf("Each thread fills, in a loop with the bounds and schedule of %s, what it uses there.", strings.Join(item.Loops, ", "))
		switch x.Kind {
		case profile.Stack:
			item.Why = fmt.Sprintf("Data on the main thread's stack, first touched%s, is used by threads of other nodes, and no plan places stacks.", at)
			what = "Allocate it, or make it static: plan places it then. Or: " + what
		case profile.Small:
			item.Why = fmt.Sprintf("Allocations smaller than a page (%s) are made and first touched%s by the main thread and used by threads of other nodes, each page mostly from one; no plan places them one by one.", x.Name, at)
			what += " Or: take them from one large block for each thread."
		default:
			item.Why = fmt.Sprintf("%s is first touched%s by the main thread and used by threads of other nodes, and no plan can name it.", x.Name, at)
		}
		item.Respect = []string{"What is read from a file, or follows from the element before, is filled in order: then touch each thread's pages first in parallel (write a zero to them), and fill them after."}
		item.Changes = []Change{{Where: "where it is filled" + at, Text: what + "\n"}}
		items = append(items, item)
	}
	return items
}

// firstTouch is " at init.c:5 (init)", the place with most first touches; "" if not known.
func (f *finder) firstTouch(places map[int]int) string {
	best, most := -1, 0
	for i, n := range places {
		if n > most || n == most && i < best {
			best, most = i, n
		}
	}
	if best < 0 {
		return ""
	}
	return " at " + access.CodeName(f.p, f.p.Places[best])
}

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
		loops[at][r.Region] += float64(r.Count)
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
		loops[g][r.Region] += float64(r.Count)
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

// ofProgram reports whether group g is the program's own: what an OpenMP runtime
// allocates is nobody's to change.
func (f *finder) ofProgram(g int) bool {
	o := &f.p.Objects[f.groups[g].Objects[0]]
	if o.Module >= 0 && OfRuntime(f.p.Modules[o.Module].Path) {
		return false
	}
	if o.Site < 0 || len(f.p.Sites[o.Site].Frames) == 0 {
		return true
	}
	m := f.p.Sites[o.Site].Frames[0].Module
	return m < 0 || !OfRuntime(f.p.Modules[m].Path)
}

// OfRuntime reports whether a file is that of an OpenMP runtime.
func OfRuntime(file string) bool {
	for _, name := range []string{"libgomp", "libomp", "libiomp"} {
		if strings.HasPrefix(path.Base(file), name) {
			return true
		}
	}
	return false
}
