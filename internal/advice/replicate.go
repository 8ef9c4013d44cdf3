package advice

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/profile"
	"numaopt/internal/units"
)

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
			written[g] = written[g] || !f.border(int(r.Page))
		} else if f.plan.Counts(r) {
			f.pageOf(pages, r).use[f.plan.Node(r)] += float64(r.Count)
			if loops[g] == nil {
				loops[g] = make(map[int]float64)
			}
			loops[g][int(r.Region)] += float64(r.Count)
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
		item.extra = f.copying(int64(bytes))
		for region := range loops[g] {
			item.use(region, g)
		}
		item.Why = fmt.Sprintf("%s (%v) is only read once it is filled, and threads of several nodes read the same pages: a copy for each of the %d nodes makes these reads local, for %v more memory. Making the copies takes about %s of the accesses that the program makes now; they are remote, and in the figure.",
			f.groups[g].Name, bytes, f.n, bytes*units.Bytes(f.n-1), units.FormatPercent(units.Percent(item.extra, f.known)))
		item.Respect = []string{"Nothing writes to it after the copies are made; --only and other inputs may hide code that does."}
		f.replicateText(&item, g)
		items = append(items, item)
	}
	return items
}

// copying is the remote accesses that making the copies of an array takes, once: the main
// thread writes a line of each copy but its own node's, and reads the array for each, of
// which all but one in n are elsewhere.
func (f *finder) copying(bytes int64) float64 {
	lines := float64(bytes / int64(f.line()))
	return 2 * lines * float64(f.n-1)
}

// border reports whether a page is the first or the last of an object of several pages
// and has bytes of others: what is stored there may be theirs.
func (f *finder) border(page int) bool {
	x := &f.p.Pages[page]
	o := &f.p.Objects[x.Object]
	end := int64(o.Head) + o.Bytes
	last := units.Bytes(end).Pages() - 1
	return last > 1 && (x.Index == 0 && o.Head > 0 || x.Index == last && end%units.PageSize != 0)
}

// replicateText prints how a C program makes and finds the copies.
func (f *finder) replicateText(item *Item, g int) {
	o := &f.p.Objects[f.groups[g].Objects[0]]
	if len(f.groups[g].Objects) > 1 {
		item.Notes = append(item.Notes, fmt.Sprintf("These are %d allocations; each gets its copies.", len(f.groups[g].Objects)))
	}
	name, named := f.variable(g)
	if !named {
		name = "data"
		item.Notes = append(item.Notes, f.unknownName(g, name))
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
	b.add("static void *%s_of[NUMAOPT_MAX_NODES];", name)
	c := f.atTop(f.fileOf(item), "#include <numaopt.h>\n#include <string.h>\n"+b.String())
	item.Changes = append(item.Changes, c)
	b = lines{}
	b.open("for (int n = 0; n < numaopt_nodes(); n++) {")
	b.add("numaopt_dist d = numaopt_bind(%d, n);", o.Bytes)
	b.add("%s_of[n] = numaopt_alloc(&d, NULL);", name)
	b.add("memcpy(%[1]s_of[n], %[1]s, %[2]d);", name, o.Bytes)
	b.close("}")
	item.Changes = append(item.Changes, Change{Where: "once it is filled", Text: b.String()})
	mine := fmt.Sprintf("__typeof__(%[1]s[0]) *%[1]s = (__typeof__(%[1]s))%[1]s_of[numaopt_node()]; // once a thread", name)
	for i := range f.p.Regions {
		if slices.Contains(item.Loops, f.region(i)) {
			if c := f.withCopy(i, mine); !slices.Contains(item.Changes, c) {
				item.Changes = append(item.Changes, c)
			}
		}
	}
}

// fileOf is the source file of the first loop of an item that has one.
func (f *finder) fileOf(item *Item) string {
	for i := range f.p.Regions {
		if slices.Contains(item.Loops, f.region(i)) && f.p.Regions[i].File != "" {
			return f.p.Regions[i].File
		}
	}
	return ""
}

// ofTeam is the clauses that belong to the parallel region of a combined directive.
var ofTeam = []string{"if", "num_threads", "shared", "copyin", "proc_bind"}

// withCopy is a loop in C with a declaration for each thread before it.
func (f *finder) withCopy(i int, declaration string) Change {
	_, l, why := f.parallelLoop(i)
	by := Change{Where: "at the start of the parallel region of " + f.region(i), Text: declaration + "\n"}
	if why != "" || !startsTeam.MatchString(l.pragma) || strings.Contains(l.pragma, "default") {
		return by
	}
	m := shared.FindString(l.pragma)
	var team, own []string
	for _, c := range clause.FindAllStringSubmatch(l.pragma[len(m):], -1) {
		if slices.Contains(ofTeam, c[1]) {
			team = append(team, c[0])
		} else {
			own = append(own, c[0])
		}
	}
	n := &nest{file: f.source(f.p.Regions[i].File), par: l}
	var b lines
	b.add("%s", strings.TrimSpace("#pragma omp parallel "+strings.Join(team, " ")))
	b.open("{")
	b.add("%s", declaration)
	b.add("%s", strings.TrimSpace("#pragma omp "+strings.TrimSpace(strings.TrimPrefix(m, "omp parallel"))+" "+strings.Join(own, " ")))
	b.depth--
	from := l.head
	if begin := n.file.lines[l.Line-1]; strings.TrimSpace(n.file.text[begin:from]) == "" {
		from = begin
	}
	b.raw(n.file.text[from:l.after])
	b.add("}")
	return n.instead(&f.p.Regions[i], b.String())
}
