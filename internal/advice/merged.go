package advice

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
)

// Merged is by region the lines of the loops that gcc merged into it, ascending, two or
// more: worksharing loops of one outlined function that share the one call for the
// thread's number, so that a profile takes them for one. They are those of the source
// that read returns, if code says that the region has code of their lines.
func Merged(p *profile.Profile, read func(file string) []byte, code func(region int) map[int]bool) map[int][]int {
	f := &finder{p: p, opt: Options{Read: read, Code: code}, files: make(map[string]*file)}
	lines := make(map[int][]int)
	for i := range p.Regions {
		if list := f.mergedIn(i); len(list) > 1 {
			for _, l := range list {
				lines[i] = append(lines[i], l.Line)
			}
		}
	}
	return lines
}

// mergedIn is the loops that gcc merged into region i; none where it is a loop alone.
func (f *finder) mergedIn(i int) (list []*loop) {
	r := &f.p.Regions[i]
	if r.Runtime != "libgomp" || !r.Worksharing() {
		return nil
	}
	x := f.source(r.File)
	if x == nil || x.at(r.Line) != nil {
		return nil
	}
	return f.loopsIn(i, x)
}

// loopsIn is the parallel loops that region i, which is not at one of them, may be of:
// those within the region's text, and those of procedures that its code has inlined.
func (f *finder) loopsIn(i int, x *file) (list []*loop) {
	list = x.region(f.p.Regions[i].Line)
	if f.opt.Code == nil {
		return list
	}
	lines := f.opt.Code(i)
	for _, l := range x.loops {
		if l.parallel() && !startsTeam.MatchString(l.pragma) && !slices.Contains(list, l) && lines[l.Line] && !f.elsewhere(i, x, l) {
			list = append(list, l)
		}
	}
	return slices.DeleteFunc(list, func(l *loop) bool {
		for n := l.Line; n <= x.line(l.after-1); n++ {
			if lines[n] {
				return false
			}
		}
		return len(lines) > 0
	})
}

// elsewhere reports whether a region other than i is l, or is of the text around it.
func (f *finder) elsewhere(i int, x *file, l *loop) bool {
	for j := range f.p.Regions {
		r := &f.p.Regions[j]
		if j != i && r.File == f.p.Regions[i].File && r.Worksharing() && r.Line > 0 && (x.at(r.Line) == l || slices.Contains(x.region(r.Line), l)) {
			return true
		}
	}
	return false
}

// notMerged says what would tell the merged loops apart.
const notMerged = "compiled by clang, or in a function each that is not inlined, they are told apart"

// mixed says which regions' remote accesses are of several loops, so that nobody can
// say which of them should change; but for those that merged has an item for.
func (f *finder) mixed() (notes []string) {
	far := make([]float64, len(f.p.Regions))
	rows := f.plan.Profile.Rows
	for i := range rows {
		far[rows[i].Region] += float64(f.plan.Remote(&rows[i]))
	}
	for i := range f.p.Regions {
		list := f.mergedIn(i)
		if len(list) < 2 || f.unmerged[i] || !f.matters(far[i]) {
			continue
		}
		var each []string
		for _, l := range list {
			over := "a loop that is not understood"
			if l.Var != "" {
				if over = "over " + l.Var; l.Down {
					over += ", descending"
				}
			}
			each = append(each, fmt.Sprintf("line %d (%s)", l.Line, over))
		}
		notes = append(notes, fmt.Sprintf("gcc merged %d loops into %s, with one thread number: %s. The plan leaves %.1f points of the DRAM accesses remote there, and which loop makes them cannot be seen: %s; profile such a build for its advice.",
			len(list), f.region(i), strings.Join(each, ", "), 100*far[i]/f.known, notMerged))
	}
	return notes
}

// merged finds regions of several loops in both directions whose thread number gcc
// fetches once, so that the profile takes them for one loop. Of a page that both use,
// a thread and its mirror image T-1-t, the mirror's accesses are taken for those of the
// descending loops.
func (f *finder) merged() (items []Item) {
	for i := range f.p.Regions {
		r := &f.p.Regions[i]
		x := f.source(r.File)
		var up, down []*loop
		for _, l := range f.mergedIn(i) {
			switch {
			case l.Var == "":
			case l.Down:
				down = append(down, l)
			default:
				up = append(up, l)
			}
		}
		if len(up) == 0 || len(down) == 0 || slices.ContainsFunc(append(up, down...), func(l *loop) bool { return x.crossing(l) != "" }) {
			continue
		}
		item := Item{Kind: Schedule}
		if f.folded(&item, i); !f.matters(item.saved) {
			continue
		}
		if len(down) > len(up) {
			up, down = down, up
		}
		for _, l := range down {
			name := place(r.File, l.Line)
			if x.line(l.head) > r.Line && l.head < x.regionEnd(x.lines[r.Line-1]) { // not of another procedure
				name += fmt.Sprintf(" (%s)", r.Function)
			}
			item.Loops = append(item.Loops, name+": static-inverse")
			f.schedule(&item, i, l, string(plan.StaticInverse), nil)
		}
		item.Why = fmt.Sprintf("The %d loops of the parallel region at %s go in both directions, so that the first thread has the first part of some and the last of others. gcc fetches the thread number once for all of them: they cannot be told apart in this binary, and not in its profile. In a function each that is not inlined, or compiled by clang, numaopt changes them itself.",
			len(up)+len(down), place(r.File, r.Line))
		item.Respect = []string{"No thread may count on having the same iterations in these loops as in others of the region: no nowait between them, nothing private that is carried from one to the next."}
		item.Notes = append(item.Notes, "The figure takes what the mirror image of a page's thread does to it for the work of these loops.")
		f.unmerged[i] = true
		items = append(items, item)
	}
	return items
}

// folded counts for item the accesses of region i that become local if what the mirror
// image of a page's node does to it is done by that node.
func (f *finder) folded(item *Item, i int) {
	mirror := f.mirrors(i)
	use := make(map[int][]float64)
	before := make(map[int]float64)
	f.each(func(r *profile.Row) {
		o := f.p.Pages[r.Page].Object
		if int(r.Region) != i || !f.plan.Placeable(o) {
			return
		}
		if use[int(r.Page)] == nil {
			use[int(r.Page)] = make([]float64, f.n)
		}
		use[int(r.Page)][f.p.Threads[r.Thread].Node] += float64(r.Count)
		before[int(r.Page)] += float64(f.plan.Remote(r))
		item.use(i, f.of[o])
	})
	for page, by := range use {
		var all, most float64
		for n, x := range by {
			all += x
			local := x
			if m := mirror[n]; m >= 0 && m != n {
				local += by[m]
			}
			most = max(most, local)
		}
		item.saved += max(0, before[page]-(all-most))
	}
}

// mirrors is by node that of the threads T-1-t of its own; -1 where there is not one.
func (f *finder) mirrors(region int) []int {
	node := make(map[int]int) // by rank
	team := 0
	rows := f.plan.Profile.Rows
	for k := range rows {
		if int(rows[k].Region) == region {
			t := &f.p.Threads[rows[k].Thread]
			node[t.Rank] = int(t.Node)
			team = max(team, t.Rank+1)
		}
	}
	mirror := make([]int, f.n)
	for n := range mirror {
		mirror[n] = -1
	}
	for rank, n := range node {
		if m, ok := node[team-1-rank]; ok {
			mirror[n] = m
		}
	}
	return mirror
}
