package advice

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"numaopt/internal/profile"
	"numaopt/internal/shape"
	"numaopt/internal/units"
)

// dist is the name of the variable that holds m's distribution.
func (m *member) dist() string { return m.name + "_dist" }

// memory is the name of the pointer to m's memory where that is padded.
func (m *member) memory() string { return m.name + "_memory" }

// describe writes the changes for a family, what they must respect and what was not
// understood.
func (x *family) describe(item *Item) {
	x.declare(item)
	for _, u := range x.loops {
		if u.whole {
			item.Notes = append(item.Notes, fmt.Sprintf("%s stays as it is: %s.", x.f.region(u.region), u.why))
			continue
		}
		item.Changes = append(item.Changes, x.loopText(u))
		if u.why != "" {
			item.Notes = append(item.Notes, fmt.Sprintf("%s: %s. %s", x.f.region(u.region), u.why, u.toFill()))
		}
		if calls := x.calls(u); len(calls) > 0 {
			item.Notes = append(item.Notes, fmt.Sprintf("%s calls %s: the accesses made there are counted with the loop's, but how far they reach is not read: check that they stay within its part.", x.f.region(u.region), strings.Join(calls, ", ")))
		}
		if r := x.respect(u); r != "" && !slices.Contains(item.Respect, r) {
			item.Respect = append(item.Respect, r)
		}
		for i, r := range u.reach {
			if r.guessed && r.rows > 0 && u.why == "" {
				item.Notes = append(item.Notes, fmt.Sprintf("%s: how far it reaches in %s along %s is not seen; one index on either side of a cut is assumed.", x.f.region(u.region), x.members[i].name, axisName[x.serial(u)]))
			}
		}
	}
	item.Respect = append(item.Respect, fmt.Sprintf("Every loop that uses %s much follows the distribution, the one that touches it first among them; the threads are bound, one for each CPU, in the order of the nodes.", x.memberNames()))
}

// memberNames is the arrays of the family.
func (x *family) memberNames() string {
	var names []string
	for _, m := range x.members {
		names = append(names, m.name)
	}
	return strings.Join(names, ", ")
}

// toFill says what the text for a loop that is not understood lacks.
func (u *use) toFill() string {
	if u.par == nil || len(u.sweeps) == 0 {
		return "What is printed for it shows how its iterations are shared out; the loops' own bounds, where <> stands, and the body are to be filled in."
	}
	return "What is printed for it has its bounds; the bodies are to be filled in."
}

// calls is the functions that the text of a loop calls, four at most.
func (x *family) calls(u *use) []string {
	if u.nest == nil {
		return nil
	}
	top := u.nest.par
	if u.nest.outer {
		top = u.nest.ser
	}
	list := u.nest.file.calls(top)
	return list[:min(len(list), 4)]
}

// respect is the dependence of one loop.
func (x *family) respect(u *use) string {
	s := x.serial(u)
	if s < 0 {
		return ""
	}
	name := x.f.region(u.region)
	if u.nest == nil && len(u.sweeps) > 1 {
		return fmt.Sprintf("%s: the sweeps along %s may be taken apart only if nothing but %s goes from one to the next.", name, axisName[s], x.memberNames())
	}
	if u.nest == nil {
		return fmt.Sprintf("%s: check whether a recurrence runs along %s: if it ascends, the phases go from the first to the last, if it descends from the last to the first; with none they may have any order.", name, axisName[s])
	}
	ser, rows, guessed := u.nest.ser, 0, false
	for _, r := range u.reach {
		rows, guessed = max(rows, r.carried), guessed || r.guessed && r.carried > 0
	}
	way, order := "ascending", "from the first to the last"
	if ser.Down {
		way, order = "descending", "from the last to the first"
	}
	text := ""
	switch {
	case rows == 0:
		text = fmt.Sprintf("%s: no dependence along %s (%s) is seen: its phases may have any order.", name, ser.Var, axisName[s])
	case guessed:
		text = fmt.Sprintf("%s: %s (%s) is swept %s, so the phases go %s; check what its calls read along %s.", name, ser.Var, axisName[s], way, order, ser.Var)
	default:
		text = fmt.Sprintf("%s: %s (%s) is swept %s and reaches %d beyond: the phases go %s, and the barrier after each carries the dependence.", name, ser.Var, axisName[s], way, rows, order)
	}
	switch {
	case u.nest.outer && u.nest.apart:
		text += fmt.Sprintf(" There is no barrier after each %s any more: check that what it calls reads nothing along %s that another thread writes.", ser.Var, u.nest.par.Var)
	case u.nest.outer:
		text += fmt.Sprintf(" It may also read along %s, so the barrier after each %s stays.", u.nest.par.Var, ser.Var)
	}
	return text
}

// languageOf tells the language of a family's arrays from their loops.
func (x *family) language() Language {
	for _, u := range x.loops {
		if l := languageOf(x.f.p.Regions[u.region].File); l != "" {
			return l
		}
	}
	return C
}

// declare writes the distributions and the memory of the members.
func (x *family) declare(item *Item) {
	language := x.language()
	if language == Fortran {
		x.declareFortran(item)
		return
	}
	var global strings.Builder
	var begin []string
	global.WriteString(headers)
	for _, m := range x.members {
		fmt.Fprintf(&global, "%snumaopt_dist %s;\n", x.scope(), m.dist())
		name := m.name
		elem := fmt.Sprint(m.layout.elem)
		text := fmt.Sprintf("%s = %s;\n", m.dist(), x.constructor(m, "", elem))
		if m.padded {
			fmt.Fprintf(&global, "%svoid *%s; // %s, its rows padded to whole pages\n", x.scope(), m.memory(), name)
			text += fmt.Sprintf("%s = numaopt_alloc(&%s, NULL);\n", m.memory(), m.dist())
		} else {
			text += fmt.Sprintf("numaopt_distribute_to(%s, %s.bytes, &%s, NULL);\n", name, m.dist(), m.dist())
		}
		begin = append(begin, text)
	}
	item.Changes = append(item.Changes, x.f.atTop(x.where(), global.String()))
	item.Changes = append(item.Changes, x.made(begin, func(text string) string { return text })...)
	x.nameNotes(item)
}

// scope is that of a family's variables: of one file, or of several.
func (x *family) scope() string {
	for _, u := range x.loops {
		if x.f.p.Regions[u.region].File != x.where() {
			return "/* extern in the other files */ "
		}
	}
	return "static "
}

// notPadded says why m cannot lie in memory with longer rows; "" if it can: in C it is
// declared anew over its name, in Fortran it becomes a pointer.
func (x *family) notPadded(m *member) string {
	o := &x.f.p.Objects[m.objects[0]]
	switch language := x.language(); {
	case m.unnamed:
		return "its variable is not known"
	case language == CXX:
		return "C++ has no arrays of variable rows"
	case language == Fortran && m.shape.Source == shape.Inferred:
		return "its bounds are not known"
	case language == Fortran && o.Kind == profile.Global && (strings.HasSuffix(o.Symbol, ")") || strings.HasPrefix(o.Name, "/")):
		return "a COMMON block gives its members their places; in a module it could be a pointer to padded memory"
	}
	return ""
}

// unpad takes the layout of m as it is.
func (x *family) unpad(m *member, why string) {
	padded := m.loss
	m.layout = &layout{nodes: m.layout.nodes, elem: m.layout.elem, extent: m.layout.extent, padded: m.layout.extent, axes: m.layout.axes}
	m.loss, m.padded = m.layout.loss(int64(x.f.p.Objects[m.objects[0]].Head)), false
	m.unpadded = fmt.Sprintf("%s keeps its layout, although parts of whole pages would leave %s of its accesses remote at the parts' borders instead of %s: %s.",
		m.name, units.FormatPercent(100*padded), units.FormatPercent(100*m.loss), why)
}

// nameNotes says which arrays have no name that the source would know.
func (x *family) nameNotes(item *Item) {
	for _, m := range x.members {
		if m.unnamed {
			item.Notes = append(item.Notes, x.f.unknownName(m.group, m.name))
		}
		if x.f.p.Objects[m.objects[0]].Kind != profile.Global {
			item.Notes = append(item.Notes, fmt.Sprintf("The sizes in %s are those of this run: write what the program has them from.", m.dist()))
		}
		if m.unpadded != "" {
			item.Notes = append(item.Notes, m.unpadded)
		}
		switch {
		case m.padded && x.language() == Fortran:
			item.Notes = append(item.Notes, fmt.Sprintf("%[1]s becomes a pointer to a part of longer rows, instead of what ALLOCATE or its declaration gives it, and its uses stay as they are; but a procedure that it is passed to must declare it with (%[2]s), or it is copied.", m.name, colons(len(m.shape.Dims))))
		case m.padded:
			item.Notes = append(item.Notes, fmt.Sprintf("Rows of %[1]s are longer, %[1]s_dist.padded[1] indices: the text declares it anew in each block, over the same name, and every other use must do so.", m.name))
		}
	}
}

// where is the file of the first of the loops.
func (x *family) where() string {
	for _, u := range x.loops {
		if r := &x.f.p.Regions[u.region]; r.File != "" {
			return r.File
		}
	}
	return ""
}

// made is the texts for where the memory of the members comes from, by member, each in
// what wrap puts around it: before variables are first used, and after the rest is
// allocated.
func (x *family) made(texts []string, wrap func(string) string) (list []Change) {
	var names, begin []string
	for i, m := range x.members {
		o := &x.f.p.Objects[m.objects[0]]
		if o.Kind == profile.Global {
			names, begin = append(names, m.name+" is first used"), append(begin, texts[i])
			continue
		}
		at := x.f.allocated(o)
		c := Change{Text: wrap(texts[i])}
		if line := x.f.assigned(m.name, at); line > 0 {
			c.File, c.From = at.File, line
			c.Where = fmt.Sprintf("after %s, where %s is allocated", place(c.File, c.From), m.name)
		} else {
			c.Where = fmt.Sprintf("as soon as %s is allocated (%s) and before its memory is touched", m.name, place(at.File, at.Line))
		}
		list = append(list, c)
	}
	if len(names) > 0 {
		list = append([]Change{{Where: "before " + strings.Join(names, ", before ") + ", as at the start of main", Text: wrap(strings.Join(begin, ""))}}, list...)
	}
	return list
}

// constructor is the call that makes m's distribution.
func (x *family) constructor(m *member, suffix, elem string) string {
	var n []string
	for _, e := range m.layout.extent {
		n = append(n, fmt.Sprint(e)+suffix)
	}
	list := strings.Join(n, ", ") + ", " + elem + suffix
	if len(x.axes) == 1 {
		return fmt.Sprintf("numaopt_%s_wise(%s)", strings.ToLower(axisName[x.axes[0]]), list)
	}
	return fmt.Sprintf("numaopt_block_exclusive(%s, NUMAOPT_%s, NUMAOPT_%s)", list, axisName[x.axes[0]], axisName[x.axes[1]])
}

// loopText is the text that replaces a loop.
func (x *family) loopText(u *use) Change {
	r := &x.f.p.Regions[u.region]
	m, n := x.mainMember(u), u.nest
	switch fortran := languageOf(r.File) == Fortran; {
	case n == nil && fortran:
		return Change{Where: "instead of the loop at " + x.f.region(u.region), Text: x.skeletonFortran(u, m)}
	case n == nil:
		return Change{Where: "instead of the loop at " + x.f.region(u.region), Text: x.skeletonC(u, m)}
	case fortran:
		return n.instead(r, x.loopFortran(u, m))
	}
	return n.instead(r, x.loopC(u, m))
}

// mainMember is the array by whose distribution a loop goes: the first that the loop
// divides. All members divide alike but for padding, which gives bounds of its own; the
// largest loss has then most to lose.
func (x *family) mainMember(u *use) *member {
	for _, m := range x.members {
		for i := range x.f.want[m.group].Loops {
			if l := &x.f.want[m.group].Loops[i]; l.Region == u.region && l.Divides() {
				return m
			}
		}
	}
	return x.members[0]
}

// phaseLoop is the header of the loop over phases, which a descending sweep takes
// from the last to the first.
func phaseLoop(n names, dist string, down bool) string {
	if down {
		return fmt.Sprintf("for (int %[1]s = numaopt_phases(&%[2]s) - 1; %[1]s >= 0; %[1]s--)", n.phase, dist)
	}
	return fmt.Sprintf("for (int %[1]s = 0; %[1]s < numaopt_phases(&%[2]s); %[1]s++)", n.phase, dist)
}

// partLoop is the header of the loop over a thread's parts.
func partLoop(n names, dist string, axis int, phase, lo, hi string) string {
	return fmt.Sprintf("for (int %[1]s = 0; numaopt_part(&%[2]s, NUMAOPT_%[3]s, %[4]s, %[5]s, %[6]s, omp_get_thread_num(), omp_get_num_threads(), %[1]s, &%[7]s, &%[8]s); %[1]s++)",
		n.part, dist, axisName[axis], phase, lo, hi, n.par0, n.par1)
}

// loopC is a loop in C that follows the distribution, with the program's own body.
func (x *family) loopC(u *use, m *member) string {
	n := u.nest
	var b lines
	body := n.file.code[n.par.head:n.par.after]
	if n.outer {
		body = n.file.code[n.ser.head:n.ser.after]
	}
	names := newNames(body, n.par.Var, serialName(n))
	b.open("{")
	for _, m := range x.members {
		if m.padded && words(body, m.name) {
			b.add(redeclared(m))
		}
	}
	if n.team {
		b.add(strings.TrimSpace("#pragma omp parallel " + n.clauses))
	}
	if n.ser == nil {
		b.open("{")
		b.add("long %s, %s;", names.par0, names.par1)
		b.open("%s", partLoop(names, m.dist(), u.axis, "0", n.par.Lo, n.par.Hi)+" {")
		b.body(header(n.par, names.par0, names.par1), x.text(n, n.par.start, n.par.end))
		b.close("}")
		if n.team || !strings.Contains(n.par.pragma, "nowait") {
			b.barrier(n.team)
		}
		b.close("}")
		b.close("}")
		return b.String()
	}
	b.open("%s {", phaseLoop(names, m.dist(), n.ser.Down))
	b.add("long %s, %s, %s, %s;", names.ser0, names.ser1, names.par0, names.par1)
	b.add("numaopt_phase(&%s, NUMAOPT_%s, %s, %s, %s, &%s, &%s);", m.dist(), axisName[u.axis], names.phase, n.ser.Lo, n.ser.Hi, names.ser0, names.ser1)
	parts := partLoop(names, m.dist(), u.axis, names.phase, n.par.Lo, n.par.Hi)
	ser, par := header(n.ser, names.ser0, names.ser1), header(n.par, names.par0, names.par1)
	switch {
	case n.outer && n.apart:
		b.open("%s", parts)
		b.open("%s", ser)
		b.body(par, x.text(n, n.par.start, n.par.end))
		b.depth -= 2
	case n.outer:
		b.open("%s {", ser)
		b.open("%s", parts)
		b.body(par, x.text(n, n.par.start, n.par.end))
		b.depth--
		b.add("#pragma omp barrier")
		b.close("}")
	default:
		b.open("%s", parts)
		b.body(par, x.text(n, n.par.start, n.ser.head)+ser+x.text(n, n.ser.start, n.par.end))
		b.depth--
	}
	if !n.outer || n.apart {
		b.add("#pragma omp barrier")
	}
	b.close("}")
	b.close("}")
	return b.String()
}

func serialName(n *nest) string {
	if n.ser == nil {
		return "i"
	}
	return n.ser.Var
}

// text is the program's own from one byte to another, with the rows of padded arrays
// that are indexed by hand as long as they are then.
func (x *family) text(n *nest, from, to int) string {
	text := n.file.text[from:to]
	for _, m := range x.members {
		if !m.padded || !m.flat {
			continue
		}
		use := regexp.MustCompile(`\b` + m.name + `\s*\[([^\[\]]*)\]`)
		text = use.ReplaceAllStringFunc(text, func(s string) string {
			index := use.FindStringSubmatch(s)[1]
			if _, length, ok := flat(index); ok {
				at := strings.Index(index, "*")
				return m.name + "[" + index[:at] + strings.Replace(index[at:], length, m.dist()+".padded[1]", 1) + "]"
			}
			return s
		})
	}
	return text
}

// redeclared is m, indexed by padded rows, over the name that it has.
func redeclared(m *member) string {
	first := m.name
	if m.flat {
		return fmt.Sprintf("__typeof__(%[1]s[0]) *%[1]s = %[2]s;", first, m.memory())
	}
	last := m.layout.axes[len(m.layout.axes)-1]
	var rows strings.Builder
	for i := 1; i <= last; i++ {
		fmt.Fprintf(&rows, "[%s.padded[%d]]", m.dist(), i)
	}
	for _, n := range m.shape.Dims[last+1:] {
		fmt.Fprintf(&rows, "[%d]", n)
	}
	return fmt.Sprintf("__typeof__(%s%s) (*%s)%s = %s;", first, strings.Repeat("[0]", len(m.shape.Dims)), first, rows.String(), m.memory())
}

// stands says which loop a skeleton stands for.
func (x *family) stands(u *use) string {
	if u.lost {
		return "the loop of " + x.f.region(u.region) + ", whose source is not found here"
	}
	return "the loop of " + x.f.region(u.region)
}

// hole is what stands for a bound that nobody knows here. It is no expression, so that
// the text does not compile before the program's own is there.
func hole(what string, axis int) string { return fmt.Sprintf("<%s %s>", what, axisName[axis]) }

// sides is what a skeleton says of the loop along an axis: its variable, as comments
// name it, and its bounds.
type sides struct{ index, lo, hi string }

// side is that of l, whose bounds are known, and of nil, whose are not.
func side(l *loop, axis int, last string) sides {
	if l == nil {
		return sides{"index of " + axisName[axis], hole("first", axis), hole(last, axis)}
	}
	return sides{l.Var, l.Lo, l.Hi}
}

// sweepsOf are the loops that a skeleton has phases for: those of the source, or nil
// for one that is not known.
func (u *use) sweepsOf() []*loop {
	if len(u.sweeps) == 0 {
		return []*loop{nil}
	}
	return u.sweeps
}

// bodyOf names what is to be filled in.
func bodyOf(sweep *loop) string {
	if sweep == nil {
		return "the body"
	}
	return fmt.Sprintf("the sweep of line %d with the loops around it", sweep.Line)
}

// way is the direction that a comment has to say: "" is up.
func way(sweep *loop) string {
	if sweep != nil && sweep.Down {
		return ", descending"
	}
	return ""
}

// skeletonC is the bounds for a loop whose source is not understood.
func (x *family) skeletonC(u *use, m *member) string {
	var b lines
	s := x.serial(u)
	names := newNames("", strings.ToLower(axisName[u.axis]), strings.ToLower(axisName[max(s, 0)]))
	par := side(u.par, u.axis, "end of")
	b.add("/* %s */", x.stands(u))
	if !u.inside {
		b.add("#pragma omp parallel")
	}
	if s < 0 {
		b.open("{")
		b.add("long %s, %s;", names.par0, names.par1)
		b.add("%s {", partLoop(names, m.dist(), u.axis, "0", par.lo, par.hi))
		b.add("\t/* the body, for %s <= %s < %s */", names.par0, par.index, names.par1)
		b.add("}")
		b.barrier(!u.inside)
		b.close("}")
		return b.String()
	}
	sweeps := u.sweepsOf()
	if len(sweeps) > 1 {
		b.open("{")
	}
	for _, l := range sweeps {
		ser := side(l, s, "end of")
		b.open("%s {", phaseLoop(names, m.dist(), l != nil && l.Down))
		b.add("long %s, %s, %s, %s;", names.ser0, names.ser1, names.par0, names.par1)
		b.add("%s", fmt.Sprintf("numaopt_phase(&%s, NUMAOPT_%s, %s, %s, %s, &%s, &%s);", m.dist(), axisName[u.axis], names.phase, ser.lo, ser.hi, names.ser0, names.ser1))
		b.add("%s", partLoop(names, m.dist(), u.axis, names.phase, par.lo, par.hi)+" {")
		b.add("\t/* %s, for %s <= %s < %s and %s <= %s < %s%s */", bodyOf(l), names.par0, par.index, names.par1, names.ser0, ser.index, names.ser1, way(l))
		b.add("}")
		b.add("#pragma omp barrier")
		b.close("}")
	}
	if len(sweeps) > 1 {
		b.close("}")
	}
	return b.String()
}
