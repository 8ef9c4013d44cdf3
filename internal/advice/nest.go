package advice

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// nest is a parallel loop and the loop along the other axis of its arrays, around it
// or inside, as the source has them.
type nest struct {
	file *file
	par  *loop
	// ser runs along the axis that phases cut; nil where the phases cut none. outer is
	// true where it is around par.
	ser   *loop
	outer bool
	// team is true where the directive starts the threads, too; clauses are those that
	// stay.
	team    bool
	clauses string
	// apart is true where no iteration of par is seen to read what another wrote in
	// an iteration of ser before.
	apart bool
}

// startsTeam is directives of loops that begin a parallel region, too.
var startsTeam = regexp.MustCompile(`^omp\b.*\bparallel\b`)

var (
	shared     = regexp.MustCompile(`^omp (parallel )?(for|do)( simd)?\b`)
	clause     = regexp.MustCompile(`(\w+)\s*(\((?:[^()]|\([^()]*\))*\))?`)
	droppedBy  = []string{"schedule", "nowait", "simd", "simdlen", "safelen"}
	notKept    = []string{"collapse", "ordered", "lastprivate", "linear", "order", "allocate", "tile"}
	offsetText = regexp.MustCompile(`^([+-])(\d+)$`)
)

// parallelLoop is the loop of the source that region i is; why says why there is none.
func (f *finder) parallelLoop(i int) (x *file, l *loop, why string) {
	r := &f.p.Regions[i]
	if r.File == "" || r.Line == 0 {
		return nil, nil, "the program has no debug information for it"
	}
	if x = f.source(r.File); x == nil {
		return nil, nil, fmt.Sprintf("%s cannot be read, or is in no language that is understood here", r.File)
	}
	if l = x.at(r.Line); l == nil {
		switch list := f.loopsIn(i, x); len(list) {
		case 0:
			return x, nil, fmt.Sprintf("no loop with a directive is found at line %d: the file may have changed", r.Line)
		case 1:
			l = list[0]
		default:
			return x, nil, fmt.Sprintf("%d loops share the parallel region of line %d, and one thread number", len(list), r.Line)
		}
	}
	if l.Var == "" {
		return x, l, fmt.Sprintf("the header of line %d is no plain loop by 1", l.Line)
	}
	return x, l, ""
}

// read finds the source of u.
func (x *family) read(u *use) {
	u.reach = make([]reach, len(x.members))
	for i, m := range x.members {
		if x.serial(u) >= 0 && x.f.stores[[2]int{u.region, m.group}] {
			u.reach[i] = reach{rows: 2, guessed: true, carried: 1} // a recurrence that is not seen goes through what is written
		}
	}
	file, l, why := x.f.parallelLoop(u.region)
	u.lost = file == nil
	if l != nil {
		u.inside = !startsTeam.MatchString(l.pragma)
	} else if file != nil {
		u.inside = len(file.region(x.f.p.Regions[u.region].Line)) > 0
	}
	if why != "" {
		u.why = why
		return
	}
	n := &nest{file: file, par: l}
	if u.why = cmp.Or(n.directive(), file.crossing(l)); u.why != "" {
		return
	}
	if list := x.indices(file, l, u.axis); slices.ContainsFunc(list, func(i string) bool { _, ok := offset(i, l.Var); return ok }) && n.constant(l) {
		u.par = l
	}
	s := x.serial(u)
	if s < 0 {
		u.nest = n
		return
	}
	var found []*loop
	found, u.whole, u.why = n.serialLoops(x.indices(file, l, s), axisName[s])
	if len(found) > 0 {
		n.ser = found[0]
		x.reaches(u, n, s)
		u.sweeps = n.plain(found)
	}
	if u.why == "" {
		n.outer = n.ser.head < n.par.head
		u.why = n.perfect()
	}
	if u.why == "" {
		u.nest = n
	}
}

// directive reads what the directive says beside the loop.
func (n *nest) directive() string {
	m := shared.FindStringSubmatch(n.par.pragma)
	if m == nil {
		return fmt.Sprintf("the directive of line %d is no plain parallel loop", n.file.line(n.par.directive))
	}
	n.team = m[1] != ""
	var kept []string
	for _, c := range clause.FindAllStringSubmatch(n.par.pragma[len(m[0]):], -1) {
		switch {
		case slices.Contains(notKept, c[1]):
			return fmt.Sprintf("its clause %s cannot be kept", c[0])
		case !slices.Contains(droppedBy, c[1]):
			kept = append(kept, c[0])
		}
	}
	if len(kept) > 0 && !n.team {
		return "its clauses belong to a loop directive, which phases do not have"
	}
	n.clauses = strings.Join(kept, " ")
	return ""
}

// indices are the subscripts along an axis that the members have in the loop l and
// those around it.
func (x *family) indices(f *file, l *loop, axis int) (list []string) {
	for l.parent != nil {
		l = l.parent
	}
	for _, m := range x.members {
		for _, s := range f.subscripts(f.code[l.start:l.end], m.name) {
			if axis < len(s) {
				list = append(list, s[axis])
			}
		}
	}
	return list
}

// plain is the sweeps, if they come one after the other and the bounds of each are
// known where par begins; else none.
func (n *nest) plain(sweeps []*loop) []*loop {
	for i, l := range sweeps {
		if l.head < n.par.head || !n.constant(l) || i > 0 && l.head < sweeps[i-1].after {
			return nil
		}
	}
	return sweeps
}

// constant reports whether the bounds of l, which is par or in it, are the same
// wherever they are evaluated from before par to l: nothing there sets what is in them.
func (n *nest) constant(l *loop) bool {
	before := n.file.code[n.par.head:l.head]
	for _, name := range word.FindAllString(l.Lo+" "+l.Hi, -1) {
		if regexp.MustCompile(`(?i)\b` + name + `\s*(=[^=]|[-+*/%&|^]=|\+\+|--|\[[^\]]*\]\s*=[^=])|(\+\+|--|&)\s*` + name + `\b|\w[\s*]+` + name + `\s*[;,]`).MatchString(before) {
			return false
		}
	}
	return !strings.ContainsAny(l.Lo+l.Hi, "([") // calls and elements may differ
}

// serialLoops is the loop around par, or in it, whose variable is in indices. why says
// why there is not one, or not one alone. whole is true
// where there is something between two of them: then each line is needed as a whole,
// as for a Fourier transform, and phases cannot cut it.
func (n *nest) serialLoops(indices []string, axis string) (found []*loop, whole bool, why string) {
	if l := n.par.parent; l != nil && l.Var != "" && !l.parallel() && words(strings.Join(indices, " "), l.Var) {
		return []*loop{l}, false, ""
	}
	for _, l := range n.file.loops {
		if l.head >= n.par.start && l.after <= n.par.end && l.Var != "" && l.Var != n.par.Var && words(strings.Join(indices, " "), l.Var) {
			found = append(found, l)
		}
	}
	if why := n.wholeLines(found); why != "" {
		return found, true, why + ": phases cannot cut them, and it goes through the blocks of all nodes"
	}
	switch len(found) {
	case 0:
		return nil, false, fmt.Sprintf("the text of the loop has no loop along %s: it is in a function that it calls, or subscripts are not plain", axis)
	case 1:
		return found, false, ""
	}
	var lines []string
	for i, l := range found {
		if before := found[max(0, i-1)]; i > 0 && before.parent == l.parent && strings.TrimSpace(n.file.code[before.after:min(l.head, l.directive)]) != "" {
			whole = true
		}
		way := "ascending"
		if l.Down {
			way = "descending"
		}
		lines = append(lines, fmt.Sprintf("%d (%s)", l.Line, way))
	}
	what := "each of these sweeps takes phases of its own, a descending one from the last to the first"
	if whole {
		what = "with work on the whole line between, so phases cannot cut it, and it goes through the blocks of all nodes"
	}
	return found, whole, fmt.Sprintf("it goes along %s in lines %s: %s", axis, strings.Join(lines, ", "), what)
}

// perfect says why phases would change what the loop does: there are statements
// between the two loops, which phases would repeat.
func (n *nest) perfect() string {
	out, in := n.par, n.ser
	if n.outer {
		out, in = n.ser, n.par
		if n.ser.pragma != "" { // the region begins around the serial loop
			clauses, ok := strings.CutPrefix(n.ser.pragma, "omp parallel")
			if !ok || n.team {
				return fmt.Sprintf("the directive of line %d is not understood", n.file.line(n.ser.directive))
			}
			n.team, n.clauses = true, strings.TrimSpace(clauses)
		}
	}
	for l := in; l != out; l = l.parent {
		if l == nil || len(l.parent.inner) != 1 || !n.only(l.parent, l) {
			return fmt.Sprintf("there are statements beside the loop of line %d, which each phase would repeat: take them out first, sums into an array", in.Line)
		}
	}
	for l := in.parent; l != nil && l.head >= out.head; l = l.parent {
		if words(in.Lo+" "+in.Hi, l.Var) {
			return fmt.Sprintf("the bounds of line %d depend on %s", in.Line, l.Var)
		}
	}
	return ""
}

// only reports whether the body of l is nothing but inner.
func (n *nest) only(l, inner *loop) bool {
	begin := strings.Trim(n.file.code[l.start:inner.head], " \t\r\n")
	end := strings.Trim(n.file.code[inner.after:l.end], " \t\r\n")
	return begin == "" && end == "" || begin == "{" && end == "}"
}

// reaches reads how far the loop reaches along the serial axis, and whether its
// iterations are apart.
func (x *family) reaches(u *use, n *nest, axis int) {
	top := n.par
	if n.ser.head < top.head {
		top = n.ser
	}
	code := n.file.code[top.start:top.end]
	n.apart = !n.beside(code)
	for i, m := range x.members {
		uses := n.file.subscripts(code, m.name)
		if len(uses) == 0 {
			if x.f.uses(u.region, m.group) {
				n.apart = false
			} else {
				u.reach[i] = reach{}
			}
			continue
		}
		var low, high int
		known := true
		for _, s := range uses {
			if len(s) <= max(axis, u.axis) {
				known, n.apart = false, false
				break
			}
			at, ok := offset(s[axis], n.ser.Var)
			known = known && ok
			low, high = min(low, at), max(high, at)
			if at, ok := offset(s[u.axis], n.par.Var); !ok || at != 0 {
				n.apart = false
			}
		}
		if known {
			u.reach[i] = reach{rows: high - low}
			// Stores through a pointer or to a member are seen in the profile only.
			if x.f.stores[[2]int{u.region, m.group}] || n.file.assigns(code, m.name) {
				u.reach[i].carried = max(high, -low)
			}
		}
	}
}

// beside reports whether a subscript of any array in code is beside the iteration of
// par: "y + 1".
func (n *nest) beside(code string) bool {
	brackets := `\[[^\[\]]*\b%s\s*[-+][^\[\]]*\]`
	if n.file.language == Fortran {
		brackets = `\([^()]*\b%s\s*[-+][^()]*\)`
	}
	return regexp.MustCompile(fmt.Sprintf(brackets, n.par.Var)).MatchString(code)
}

// offset is k for the subscripts "v + k", "v - k" and "v"; ok is false for others.
func offset(subscript, v string) (k int, ok bool) {
	rest, ok := strings.CutPrefix(strings.Join(strings.Fields(subscript), ""), v)
	if rest == "" || !ok {
		return 0, ok
	}
	m := offsetText.FindStringSubmatch(rest)
	if m == nil {
		return 0, false
	}
	k, err := strconv.Atoi(m[1] + m[2])
	return k, err == nil
}
