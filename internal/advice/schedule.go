package advice

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/planner"
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
	if calls := file.calls(l); len(calls) > 0 {
		item.Notes = append(item.Notes, fmt.Sprintf("%s calls %s: the accesses made there are counted with the loop's, but dependences between iterations are not looked for in it.", place(r.File, l.Line), strings.Join(calls, ", ")))
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
