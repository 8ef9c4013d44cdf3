package advice

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
)

// schedules finds the loops that would get another schedule if their code allowed it.
func (f *finder) schedules() ([]Item, error) {
	if f.opt.Planner.NoSchedules {
		return nil, nil
	}
	items, err := f.refused()
	return append(items, f.merged()...), err
}

// refused plans again as if no loop of OpenMP's had to stay static, and measures all
// further items against that if it is worth an item.
func (f *finder) refused() ([]Item, error) {
	remote := 0.0
	for i := range f.result.Loops {
		if l := &f.result.Loops[i]; l.Refused != "" {
			remote += float64(l.After)
		}
	}
	if !f.matters(remote) {
		return nil, nil
	}
	opt := f.opt.Planner
	opt.Refuse = make(map[int]string)
	for i := range f.p.Regions {
		if f.p.Regions[i].Worksharing() {
			opt.Refuse[i] = ""
		}
	}
	for i := range f.result.Loops {
		if l := &f.result.Loops[i]; l.Refused != "" {
			opt.Refuse[l.Region] = f.dependence(l.Region)
		}
	}
	opt.Apart = func(int) bool { return true }
	free, err := planner.Build(f.p, opt)
	if err != nil {
		return nil, err
	}
	item := Item{Kind: Schedule, saved: float64(f.result.After.Remote) - float64(free.After.Remote)}
	if !f.matters(item.saved) {
		return nil, nil
	}
	now := make(map[int]*planner.LoopDecision)
	for i := range f.result.Loops {
		now[f.result.Loops[i].Region] = &f.result.Loops[i]
	}
	var reasons []string
	for i := range free.Loops {
		l := &free.Loops[i]
		old := now[l.Region]
		if old == nil || old.Schedule == l.Schedule {
			continue
		}
		nodes := []int(nil)
		for _, x := range free.Plan.Loops {
			if x.Offset == f.p.Regions[l.Region].Site.Offset && x.Name == l.Name {
				nodes = x.Nodes
			}
		}
		item.Loops = append(item.Loops, fmt.Sprintf("%s: %s", f.region(l.Region), l.Schedule))
		if old.Refused != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %s", f.region(l.Region), old.Refused))
		}
		f.schedule(&item, l.Region, nil, l.Schedule, nodes)
	}
	if len(item.Loops) == 0 {
		return nil, nil
	}
	item.Why = "With another schedule these loops find their data at home (CGO'12 §4.2, fig. 14(c)), but nobody may change it in this binary"
	if len(reasons) > 0 {
		item.Why += ": " + strings.Join(reasons, "; ")
	}
	item.Why += "."
	item.Respect = append(item.Respect, "No thread may count on having the same iterations in these loops as in others: nothing threadprivate, on its stack or found by its number is carried from one to the next.")
	f.plan = free.Outcome
	return []Item{item}, nil
}

// dependence is why no change of the source may give region i another schedule, as far
// as the source shows it; "" if nothing is seen.
func (f *finder) dependence(i int) string {
	if x, l, why := f.parallelLoop(i); why == "" {
		return x.crossing(l)
	}
	return ""
}

// depending says which loops are not to be changed although their schedule leaves
// accesses remote.
func (f *finder) depending() (notes []string) {
	for i := range f.result.Loops {
		l := &f.result.Loops[i]
		if l.Refused == "" || !f.matters(float64(l.After)) {
			continue
		}
		if why := f.dependence(l.Region); why != "" {
			notes = append(notes, fmt.Sprintf("%s keeps its schedule: %s.", f.region(l.Region), why))
		}
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
		if r.Runtime != "libgomp" || !r.Worksharing() {
			continue
		}
		x := f.source(r.File)
		if x == nil || x.at(r.Line) != nil {
			continue
		}
		var up, down []*loop
		for _, l := range x.region(r.Line) {
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
			item.Loops = append(item.Loops, fmt.Sprintf("%s (%s): static-inverse", place(r.File, l.Line), r.Function))
			f.schedule(&item, i, l, string(plan.StaticInverse), nil)
		}
		item.Why = fmt.Sprintf("The %d loops of the parallel region at %s go in both directions, so that the first thread has the first part of some and the last of others. gcc fetches the thread number once for all of them: they cannot be told apart in this binary, and not in its profile. In a function each, or compiled by clang, numaopt changes them itself.",
			len(up)+len(down), place(r.File, r.Line))
		item.Respect = []string{"No thread may count on having the same iterations in these loops as in others of the region: no nowait between them, nothing private that is carried from one to the next."}
		item.Notes = append(item.Notes, "The figure takes what the mirror image of a page's thread does to it for the work of these loops.")
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
		if r.Region != i || !f.plan.Placeable(o) {
			return
		}
		if use[r.Page] == nil {
			use[r.Page] = make([]float64, f.n)
		}
		use[r.Page][f.p.Threads[r.Thread].Node] += float64(r.Count)
		before[r.Page] += float64(f.plan.Remote(r))
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
		if rows[k].Region == region {
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

// schedule adds the text that gives a loop another schedule: l, or the one that
// region i is.
func (f *finder) schedule(item *Item, i int, l *loop, schedule string, nodes []int) {
	r := &f.p.Regions[i]
	file := f.source(r.File)
	why := ""
	if l == nil {
		file, l, why = f.parallelLoop(i)
	}
	n := &nest{file: file, par: l}
	if why == "" {
		why = n.directive()
	}
	if why != "" {
		item.Notes = append(item.Notes, fmt.Sprintf("%s: %s. Its bounds are those that numaopt_static_inverse, or numaopt_static with another thread's number, give.", f.region(i), why))
		return
	}
	inverse := strings.HasPrefix(schedule, string(plan.StaticInverse)) != l.Down
	text := ""
	if file.language == Fortran {
		text = n.permutedFortran(inverse, nodes, f.n)
	} else {
		text = n.permutedC(inverse, nodes, f.n)
		if c := f.atTop(r.File, headers); !slices.Contains(item.Changes, c) {
			item.Changes = append(item.Changes, c)
		}
	}
	item.Changes = append(item.Changes, n.instead(r, text))
}

// static is the function whose chunks are wanted: those of a descending loop are
// counted from its end.
func static(inverse bool) string {
	if inverse {
		return "numaopt_static_inverse"
	}
	return "numaopt_static"
}

// permutedC is the loop with the chunk of another thread, with the program's own body.
func (n *nest) permutedC(inverse bool, nodes []int, p int) string {
	l := n.par
	code := n.file.code[l.head:l.after]
	x := newNames(code, l.Var, "t")
	thread := "omp_get_thread_num()"
	var b lines
	if n.team {
		b.add("%s", strings.TrimSpace("#pragma omp parallel "+n.clauses))
	}
	b.open("{")
	if len(nodes) > 0 {
		thread = x.thread
		b.add("static const int %s[] = {%s};", x.nodes, commas(nodes))
		b.add("int %s = omp_get_thread_num(), %s = omp_get_num_threads() / %d;", x.thread, x.each, p)
		b.add("if (omp_get_num_threads() %% %[1]d == 0) /* else the nodes have no equal parts: plain static */", p)
		b.add("\t%[1]s = %[2]s[%[1]s / %[3]s] * %[3]s + %[1]s %% %[3]s;", x.thread, x.nodes, x.each)
	}
	b.add("long %s, %s;", x.par0, x.par1)
	b.add("%s", fmt.Sprintf("%s(%s, %s, %s, omp_get_num_threads(), &%s, &%s);", static(inverse), l.Lo, l.Hi, thread, x.par0, x.par1))
	b.body(header(l, x.par0, x.par1), n.file.text[l.start:l.end])
	if !strings.Contains(l.pragma, "nowait") {
		b.barrier(n.team)
	}
	b.close("}")
	return b.String()
}

// permutedFortran is permutedC for Fortran.
func (n *nest) permutedFortran(inverse bool, nodes []int, p int) string {
	l := n.par
	x := newNames(n.file.code[l.head:l.after], l.Var, "t")
	private := []string{x.par0, x.par1, l.Var}
	thread, own := "omp_get_thread_num()", []string{x.par0, x.par1}
	if len(nodes) > 0 {
		thread = x.thread
		private, own = append(private, x.thread, x.each), append(own, x.thread, x.each)
	}
	b := &lines{unit: "  "}
	b.blockFortran(own)
	if len(nodes) > 0 {
		b.add("integer, parameter :: %s(0:%d) = [%s]", x.nodes, len(nodes)-1, commas(nodes))
	}
	if n.team {
		b.add("!$omp parallel %s", privateClause(n.clauses, private))
	}
	if len(nodes) > 0 {
		b.add("%s = omp_get_thread_num()", x.thread)
		b.add("%s = omp_get_num_threads() / %d", x.each, p)
		b.add("if (mod(omp_get_num_threads(), %d) == 0) &  ! else the nodes have no equal parts: plain static", p)
		b.add("  %[1]s = %[2]s(%[1]s / %[3]s) * %[3]s + mod(%[1]s, %[3]s)", x.thread, x.nodes, x.each)
	}
	b.add("call %s(%s, %s, %s, omp_get_num_threads(), %s, %s)", static(inverse), l.Lo, l.Hi, thread, x.par0, x.par1)
	if l.Down {
		b.add("do %s = %s, %s, -1", l.Var, x.par1, x.par0)
	} else {
		b.add("do %s = %s, %s", l.Var, x.par0, x.par1)
	}
	b.raw(n.file.text[l.start:l.end])
	b.add("end do")
	if n.team {
		b.add("!$omp end parallel")
	} else {
		b.add("!$omp barrier")
	}
	b.close("end block")
	return b.String()
}

func commas(list []int) string {
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for _, n := range list {
			if !yield(fmt.Sprint(n)) {
				return
			}
		}
	}), ", ")
}
