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

// place is "sweep.c:40".
func place(file string, line int) string {
	if file == "" {
		return "the program"
	}
	return fmt.Sprintf("%s:%d", path.Base(file), line)
}

// headers are what the text for a loop in C includes.
const headers = "#include <numaopt.h>\n#include <omp.h>\n"

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

// names are the variables that a text for a loop needs and the program does not have.
type names struct {
	phase, part, par0, par1, ser0, ser1, par, ser string
	thread, each, nodes                           string // see permutedC
}

// freeName is name, or with more behind it, so that it does not occur in code.
func freeName(code, name string) string {
	for words(code, name) || word.FindString(name) != name {
		name += "_"
	}
	return name
}

// newNames chooses names that do not occur in code.
func newNames(code, par, ser string) names {
	free := func(name string) string { return freeName(code, name) }
	if strings.EqualFold(par, ser) {
		ser += "s"
	}
	return names{free("phase"), free("part"), free(par + "0"), free(par + "1"), free(ser + "0"), free(ser + "1"), par, ser,
		free("thread"), free("each"), free("of_node")}
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

// blockFortran begins a block with integers of its own.
func (b *lines) blockFortran(own []string) {
	b.open("block")
	b.add("use numaopt")
	b.add("use omp_lib")
	b.add("integer :: %s", strings.Join(own, ", "))
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
