package advice

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
)

// isIdentifier reports whether a program may have a variable of this name.
func isIdentifier(name string) bool { return name != "" && word.FindString(name) == name }

// dist is the name of the variable that holds m's distribution.
func (m *member) dist() string { return m.name + "_dist" }

// memory is the name of the pointer to m's memory where that is padded.
func (m *member) memory() string { return m.name + "_memory" }

// describe writes the changes for a family, what they must respect and what was not
// understood.
func (x *family) describe(item *Item) {
	x.declare(item)
	for _, u := range x.loops {
		item.Changes = append(item.Changes, x.loopText(u))
		if u.why != "" {
			item.Notes = append(item.Notes, fmt.Sprintf("%s: %s. What is printed for it shows the bounds; the body is to be filled in.", x.f.region(u.region), u.why))
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
	var names []string
	for _, m := range x.members {
		names = append(names, m.name)
	}
	item.Respect = append(item.Respect, fmt.Sprintf("Every loop that uses %s much follows the distribution, the one that touches it first among them; the threads are bound, one for each CPU, in the order of the nodes.", strings.Join(names, ", ")))
}

// respect is the dependence of one loop.
func (x *family) respect(u *use) string {
	s := x.serial(u)
	if s < 0 {
		return ""
	}
	name := x.f.region(u.region)
	if u.nest == nil {
		return fmt.Sprintf("%s: check whether a recurrence runs along %s: if it ascends, the phases go from the first to the last, if it descends from the last to the first; with none they may have any order.", name, axisName[s])
	}
	ser, rows, guessed := u.nest.ser, 0, false
	for _, r := range u.reach {
		rows, guessed = max(rows, r.rows), guessed || r.guessed
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

// place is "sweep.c:40".
func place(file string, line int) string {
	if file == "" {
		return "the program"
	}
	return fmt.Sprintf("%s:%d", path.Base(file), line)
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

// headers are what the text for a loop in C includes.
const headers = "#include <numaopt.h>\n#include <omp.h>\n"

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

// unpad takes the layout of m as it is: C++ has no arrays of variable rows.
func (x *family) unpad(m *member) {
	m.layout = &layout{nodes: m.layout.nodes, elem: m.layout.elem, extent: m.layout.extent, padded: m.layout.extent, axes: m.layout.axes}
	m.loss, m.padded = m.layout.loss(int64(x.f.p.Objects[m.objects[0]].Head)), false
}

// nameNotes says which arrays have no name that the source would know.
func (x *family) nameNotes(item *Item) {
	for _, m := range x.members {
		if m.unnamed {
			item.Notes = append(item.Notes, fmt.Sprintf("The variable behind %s is not known; the text calls it %s.", x.f.groups[m.group].Name, m.name))
		}
		if x.f.p.Objects[m.objects[0]].Kind != profile.Global {
			item.Notes = append(item.Notes, fmt.Sprintf("The sizes in %s are those of this run: write what the program has them from.", m.dist()))
		}
		if m.padded {
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

var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include\b.*$`)

// atTop is a text for the file scope of a source file, after what it includes.
func (f *finder) atTop(name, text string) Change {
	c := Change{Where: "at the top of the file", Text: text}
	if x := f.source(name); x != nil {
		c.File = name
		if all := include.FindAllStringIndex(x.text, -1); len(all) > 0 {
			c.From = x.line(all[len(all)-1][0])
		}
		c.Where = fmt.Sprintf("after %s, what it includes", place(name, c.From))
	}
	return c
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

// assigned is the last line of the statement at a place that gives variable name its
// memory; 0 where the source does not show it, as in a function that allocates for others.
func (f *finder) assigned(name string, at ident.Location) int {
	x := f.source(at.File)
	if x == nil || at.Line < 1 || at.Line > len(x.lines) {
		return 0
	}
	from := x.lines[at.Line-1]
	to := lineEnd(x.code, from, false)
	if x.language == Fortran {
		for strings.HasSuffix(strings.TrimRight(x.code[from:to], " \t\r"), "&") && to < len(x.code) {
			to = lineEnd(x.code, to+1, false)
		}
		if regexp.MustCompile(`(?i)\ballocate\s*\(.*\b` + name + `\b`).MatchString(strings.ReplaceAll(x.code[from:to], "\n", " ")) {
			return x.line(max(from, to-1))
		}
		return 0
	}
	if i := strings.IndexByte(x.code[from:], ';'); i >= 0 {
		to = max(to, from+i+1)
	}
	if regexp.MustCompile(`\b` + name + `\s*=[^=]`).MatchString(x.code[from:to]) {
		return x.line(to - 1)
	}
	return 0
}

// allocated is where the program's own code allocates o; the zero Location if nobody
// knows.
func (f *finder) allocated(o *profile.Object) ident.Location {
	if o.Site >= 0 {
		for _, c := range f.p.Sites[o.Site].Frames {
			for _, l := range c.Inlined {
				if !l.System() && l.Line > 0 {
					return l
				}
			}
		}
	}
	return ident.Location{}
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

// names are the variables that a text for a loop needs and the program does not have.
type names struct {
	phase, part, par0, par1, ser0, ser1, par, ser string
	thread, each, nodes                           string // see permutedC
}

// newNames chooses names that do not occur in code.
func newNames(code, par, ser string) names {
	free := func(name string) string {
		for words(code, name) || word.FindString(name) != name {
			name += "_"
		}
		return name
	}
	if strings.EqualFold(par, ser) {
		ser += "s"
	}
	return names{free("phase"), free("part"), free(par + "0"), free(par + "1"), free(ser + "0"), free(ser + "1"), par, ser,
		free("thread"), free("each"), free("of_node")}
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

// instead is a text that takes the place of n, which is region r, in whole lines: what
// else is in the first and the last of them stays.
func (n *nest) instead(r *profile.Region, text string) Change {
	top := n.par
	if n.outer {
		top = n.ser
	}
	from := min(top.head, top.directive)
	c := Change{Text: text, File: r.File, From: n.file.line(from), To: n.file.line(top.after - 1)}
	if before := n.file.text[n.file.lines[c.From-1]:from]; strings.TrimSpace(before) != "" {
		c.Text = before + "\n" + c.Text
	}
	if rest := strings.TrimSpace(n.file.text[top.after:max(top.after, lineEnd(n.file.text, top.after-1, false))]); rest != "" {
		c.Text += rest + "\n"
	}
	c.Where = fmt.Sprintf("instead of %s-%d (%s)", place(r.File, c.From), c.To, r.Function)
	return c
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

// header is the loop over [from, to) in the direction of l.
func header(l *loop, from, to string) string {
	kind := l.Type
	if kind == "" {
		kind = "long"
	}
	if l.Down {
		return fmt.Sprintf("for (%s %s = %s - 1; %s >= %s; %s--)", kind, l.Var, to, l.Var, from, l.Var)
	}
	return fmt.Sprintf("for (%s %s = %s; %s < %s; %s++)", kind, l.Var, from, l.Var, to, l.Var)
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

// skeletonC is the bounds for a loop whose source is not understood.
func (x *family) skeletonC(u *use, m *member) string {
	var b lines
	s := x.serial(u)
	p := strings.ToLower(axisName[u.axis])
	names := newNames("", p, strings.ToLower(axisName[max(s, 0)]))
	extent := func(axis int) int64 { return m.layout.extent[axis] }
	if !u.inside {
		b.add("#pragma omp parallel")
	}
	if s < 0 {
		b.open("{")
		b.add("long %s, %s;", names.par0, names.par1)
		b.add("%s {", partLoop(names, m.dist(), u.axis, "0", "0", fmt.Sprint(extent(u.axis))))
		b.add("\t/* the body, for %s <= index of %s < %s */", names.par0, axisName[u.axis], names.par1)
		b.add("}")
		b.barrier(!u.inside)
		b.close("}")
		return b.String()
	}
	b.open("%s {", phaseLoop(names, m.dist(), false))
	b.add("long %s, %s, %s, %s;", names.ser0, names.ser1, names.par0, names.par1)
	b.add("numaopt_phase(&%s, NUMAOPT_%s, %s, 0, %d, &%s, &%s);", m.dist(), axisName[u.axis], names.phase, extent(s), names.ser0, names.ser1)
	b.add("%s {", partLoop(names, m.dist(), u.axis, names.phase, "0", fmt.Sprint(extent(u.axis))))
	b.add("\t/* the body, for %s <= index of %s < %s and %s <= index of %s < %s */", names.par0, axisName[u.axis], names.par1, names.ser0, axisName[s], names.ser1)
	b.add("}")
	b.add("#pragma omp barrier")
	b.close("}")
	return b.String()
}

// lines is text with an indentation, by tabs or else by unit.
type lines struct {
	strings.Builder
	depth int
	unit  string
}

// indent is that of the next line, by steps further in.
func (b *lines) indent(by int) string {
	unit := b.unit
	if unit == "" {
		unit = "\t"
	}
	return strings.Repeat(unit, b.depth+by)
}

func (b *lines) add(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	b.WriteString(b.indent(0) + format + "\n")
}

func (b *lines) open(format string, args ...any) {
	b.add(format, args...)
	b.depth++
}

func (b *lines) close(text string) {
	b.depth--
	b.add("%s", text)
}

// barrier ends a part of a region that goes on; the end of a region is one.
func (b *lines) barrier(team bool) {
	if !team {
		b.add("#pragma omp barrier")
	}
}

// body adds a loop's header and its body, the program's own text.
func (b *lines) body(header, text string) {
	inner := strings.TrimSpace(text)
	if !strings.HasPrefix(inner, "{") || !strings.HasSuffix(inner, "}") {
		b.add("%s", header)
		b.raw(text)
		return
	}
	b.add("%s {", header)
	b.raw(strings.TrimRight(inner[1:len(inner)-1], " \t\r\n"))
	b.add("}")
}

// raw adds the program's own text one step further in, its first line after a header.
func (b *lines) raw(text string) {
	text = strings.Trim(text, "\r\n")
	list := strings.Split(text, "\n")
	shortest := -1
	for _, l := range list {
		if rest := strings.TrimLeft(l, " \t"); rest != "" && !strings.HasPrefix(rest, "#") && (shortest < 0 || len(l)-len(rest) < shortest) {
			shortest = len(l) - len(rest)
		}
	}
	for _, l := range list {
		rest := strings.TrimLeft(l, " \t")
		indent := len(l) - len(rest)
		if rest != "" && !strings.HasPrefix(rest, "#") {
			rest = b.indent(1) + l[min(shortest, indent):]
		}
		b.WriteString(strings.TrimRight(rest, " \t\r") + "\n")
	}
}

// declareFortran is declare for Fortran.
func (x *family) declareFortran(item *Item) {
	var declarations strings.Builder
	var begin []string
	declarations.WriteString("type(numaopt_dist) :: ")
	for i, m := range x.members {
		if i > 0 {
			declarations.WriteString(", ")
		}
		declarations.WriteString(m.dist())
	}
	declarations.WriteString("  ! the module has: use numaopt\n")
	for _, m := range x.members {
		name := m.name
		begin = append(begin, fmt.Sprintf("  %[1]s = %[2]s\n  refused = numaopt_distribute_to(c_loc(%[3]s), %[1]s%%bytes, %[1]s, report)\n",
			m.dist(), x.constructor(m, "_c_size_t", fmt.Sprint(m.layout.elem)), name))
		fmt.Fprintf(&declarations, "! %s gets the attribute target\n", name)
	}
	item.Changes = append(item.Changes, Change{Where: "in a module of " + path.Base(x.where()), Text: declarations.String()})
	const uses = "block\n  use numaopt\n  use, intrinsic :: iso_c_binding\n  type(numaopt_report) :: report\n  integer(c_int) :: refused\n"
	item.Changes = append(item.Changes, x.made(begin, func(text string) string { return uses + text + "end block\n" })...)
	x.nameNotes(item)
	item.Notes = append(item.Notes, "Indices are taken to begin at 1: those of an array with another lower bound are to be shifted.")
}

// loopFortran is a loop in Fortran that follows the distribution.
func (x *family) loopFortran(u *use, m *member) string {
	n := u.nest
	top := n.par
	if n.outer {
		top = n.ser
	}
	names := newNames(n.file.code[top.head:top.after], n.par.Var, serialName(n))
	do := func(l *loop, from, to string) string {
		if l.Down {
			return fmt.Sprintf("do %s = %s, %s, -1", l.Var, to, from)
		}
		return fmt.Sprintf("do %s = %s, %s", l.Var, from, to)
	}
	own := []string{names.phase, names.part, names.par0, names.par1}
	private := append(slices.Clone(own), n.par.Var)
	begin, end, step := "0", fmt.Sprintf("numaopt_phases(%s) - 1", m.dist()), ""
	if n.ser != nil {
		own = append(own, names.ser0, names.ser1)
		private = append(slices.Clone(own), n.par.Var, n.ser.Var)
		if n.ser.Down {
			begin, end, step = end, begin, ", -1"
		}
	}
	b := &lines{unit: "  "}
	b.blockFortran(own)
	if n.team {
		b.add("!$omp parallel %s", privateClause(n.clauses, private))
	}
	b.open("do %s = %s, %s%s", names.phase, begin, end, step)
	if n.ser != nil {
		b.add("call numaopt_phase(%s, NUMAOPT_%s, %s, %s, %s, %s, %s)", m.dist(), axisName[u.axis], names.phase, n.ser.Lo, n.ser.Hi, names.ser0, names.ser1)
	}
	around := n.outer && !n.apart
	if around {
		b.open("%s", do(n.ser, names.ser0, names.ser1))
	}
	b.partsFortran(names, m.dist(), u.axis, n.par.Lo, n.par.Hi)
	if n.outer && !around {
		b.open("%s", do(n.ser, names.ser0, names.ser1))
	}
	b.add("%s", do(n.par, names.par0, names.par1))
	if n.ser == nil || n.outer {
		b.raw(n.file.text[n.par.start:n.par.end])
	} else {
		head := n.file.text[n.ser.head:n.ser.start]
		indent := head[:len(head)-len(strings.TrimLeft(head, " \t"))]
		b.raw(n.file.text[n.par.start:n.ser.head] + indent + do(n.ser, names.ser0, names.ser1) + "\n" + n.file.text[n.ser.start:n.par.end])
	}
	b.add("end do")
	if n.outer && !around {
		b.close("end do")
	}
	b.add("%[1]s = %[1]s + 1", names.part)
	b.close("end do")
	b.add("!$omp barrier")
	if around {
		b.close("end do")
	}
	b.close("end do")
	if n.team {
		b.add("!$omp end parallel")
	}
	b.close("end block")
	return b.String()
}

// blockFortran begins a block with integers of its own.
func (b *lines) blockFortran(own []string) {
	b.open("block")
	b.add("use numaopt")
	b.add("use omp_lib")
	b.add("integer :: %s", strings.Join(own, ", "))
}

// partsFortran begins the loop over a thread's parts.
func (b *lines) partsFortran(n names, dist string, axis int, lo, hi string) {
	b.add("%s = 0", n.part)
	b.add("do while (numaopt_part(%s, NUMAOPT_%s, %s, %s, %s, &", dist, axisName[axis], n.phase, lo, hi)
	b.depth++
	b.add("  omp_get_thread_num(), omp_get_num_threads(), %s, %s, %s))", n.part, n.par0, n.par1)
}

var privateText = regexp.MustCompile(`\bprivate\s*\(([^()]*)\)`)

// privateClause adds names to the private clause of clauses.
func privateClause(clauses string, list []string) string {
	m := privateText.FindStringSubmatch(clauses)
	if m != nil {
		clauses = strings.Replace(clauses, m[0], "", 1)
		for _, v := range splitTop(m[1]) {
			if !slices.ContainsFunc(list, func(w string) bool { return strings.EqualFold(v, w) }) {
				list = append(list, v)
			}
		}
	}
	return strings.TrimSpace(fmt.Sprintf("private(%s) %s", strings.Join(list, ", "), strings.Join(strings.Fields(clauses), " ")))
}

// skeletonFortran is skeletonC for Fortran.
func (x *family) skeletonFortran(u *use, m *member) string {
	s := x.serial(u)
	p := strings.ToLower(axisName[u.axis])
	names := newNames("", p, strings.ToLower(axisName[max(s, 0)]))
	own := []string{names.phase, names.part, names.par0, names.par1, names.ser0, names.ser1}
	b := &lines{unit: "  "}
	b.blockFortran(own)
	if !u.inside {
		b.add("!$omp parallel private(%s)", strings.Join(own, ", "))
	}
	b.open("do %s = 0, numaopt_phases(%s) - 1", names.phase, m.dist())
	if s >= 0 {
		b.add("call numaopt_phase(%s, NUMAOPT_%s, %s, 1, %d, %s, %s)", m.dist(), axisName[u.axis], names.phase, m.layout.extent[s], names.ser0, names.ser1)
	}
	b.partsFortran(names, m.dist(), u.axis, "1", fmt.Sprint(m.layout.extent[u.axis]))
	b.add("! the body, for indices %s to %s along %s", names.par0, names.par1, axisName[u.axis])
	if s >= 0 {
		b.add("! and %s to %s along %s", names.ser0, names.ser1, axisName[s])
	}
	b.add("%[1]s = %[1]s + 1", names.part)
	b.close("end do")
	b.add("!$omp barrier")
	b.close("end do")
	if !u.inside {
		b.add("!$omp end parallel")
	}
	b.close("end block")
	return b.String()
}
