package advice

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"numaopt/internal/pattern"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// excess is how often a loop must fetch each cache line of an array that it uses
// all-to-all for a blockwise order to be worth an item: below it, lines that two
// nodes share at the edges of their parts may be the reason.
const excess = 1.5

// spread is a loop's use of an array of which every node uses every page, or parts of
// its rows.
type spread struct {
	region, group int
	// partly is true where no node uses all of the array, but lines are used in part.
	partly        bool
	count, remote float64 // accesses, and the remote ones of them
	// once is the accesses if each line is fetched once each time, after those of
	// strips: twice as many where the array does not begin with a line.
	once, after float64
}

// blockwise finds loops that use an array all-to-all, as a transposition does. No
// placement and no schedule makes more than 1 in n of these accesses local. But where
// the parallel loop runs along the array's fastest dimension, and another one inside
// of it, a line is fetched again for each of its elements: a strip of the parallel
// loop, as long as a line, inside of all others fetches it once. Notes say where
// that is not so, of arrays that nothing else is advised for.
func (f *finder) blockwise() (items []Item, notes []string) {
	for _, s := range f.spreads() {
		if !f.matters(s.remote) {
			continue
		}
		name, loop := f.groups[s.group].Name, f.region(s.region)
		wide := s.count > excess*s.after
		n, why := f.strips(s)
		if !wide || why != "" {
			if f.taken[s.group] || s.partly {
				continue
			}
			text := fmt.Sprintf("%s uses %s all-to-all: %d in %d of these accesses (%.1f points of all) are remote wherever its pages are and whoever takes which chunk.",
				loop, name, f.n-1, f.n, 100*s.remote/f.known)
			switch {
			case !wide:
				text += " Each of its lines is fetched about once, so that none of the changes known here helps."
			case n == nil:
				text += fmt.Sprintf(" It fetches each cache line %.0f times. If it is a transposition, it would fetch each once in strips of a line (%d bytes) of its parallel loop, innermost, and %.1f points would be left; that is not printed: %s.",
					s.count/s.once, f.line(), 100*s.remote*s.after/s.count/f.known, why)
			default:
				text += fmt.Sprintf(" It fetches each cache line %.0f times, and no order is known that would fetch it once: %s.", s.count/s.once, why)
			}
			notes = append(notes, text)
			continue
		}
		left := s.remote * s.after / s.count
		item := Item{Kind: Blockwise, Objects: []string{name}, Loops: []string{loop + ": all-to-all"}, Respect: []string{}}
		// What is not fetched again is neither remote nor counted.
		item.extra = s.after - s.count
		item.saved = s.remote - left + item.extra
		item.use(s.region, s.group)
		how := fmt.Sprintf("all-to-all, as a transposition does: %d in %d of these accesses are remote wherever its pages are. But it", f.n-1, f.n)
		if s.partly {
			how = "along its columns: each row is used by several nodes. It"
			item.Loops = []string{loop + ": along columns"}
		}
		item.Why = fmt.Sprintf("%s uses %s %s fetches each line %.0f times: its threads share the fastest dimension, and other loops run inside. In strips of a line, innermost, each line is fetched once, so that the program makes %s fewer DRAM accesses in all, and %s fewer remote ones.",
			loop, name, how, s.count/s.once, units.FormatPercent(units.Percent(s.count-s.after, f.known)), units.FormatPercent(units.Percent(s.remote-left, f.remote)))
		if f.unaligned(s.group) {
			item.Notes = append(item.Notes, fmt.Sprintf("%s does not begin with a cache line, so that a strip has a part of two: aligned to %d bytes, it would fetch half of that.", name, f.line()))
		}
		elem := f.opt.Shapes[f.groups[s.group].Objects[0]].Elem
		item.Changes = append(item.Changes, n.instead(&f.p.Regions[s.region], n.striped(int64(f.line())/elem)))
		items = append(items, item)
	}
	return items, notes
}

// spreads is the all-to-all uses of arrays.
func (f *finder) spreads() (list []spread) {
	at := make(map[[2]int]int)
	for g := range f.want {
		for i := range f.want[g].Loops {
			l := &f.want[g].Loops[i]
			all := l.Kind == pattern.AllToAll
			if (all || !f.follows[g]) && len(f.groups[g].Objects) == 1 && f.p.Regions[l.Region].Kind == profile.Loop {
				at[[2]int{l.Region, g}] = len(list)
				list = append(list, spread{region: l.Region, group: g, partly: !all})
			}
		}
	}
	pages := make([]map[int]bool, len(list))
	f.each(func(r *profile.Row) {
		i, ok := at[[2]int{int(r.Region), f.of[f.p.Pages[r.Page].Object]}]
		if !ok {
			return
		}
		s := &list[i]
		s.count, s.remote = s.count+float64(r.Count), s.remote+float64(f.plan.Remote(r))
		if pages[i] == nil {
			pages[i] = make(map[int]bool)
		}
		pages[i][f.p.Pages[r.Page].Index] = true
	})
	for i := range list {
		r := &f.p.Regions[list[i].region]
		list[i].once = float64(len(pages[i])*units.PageSize/f.line()) * float64(max(1, r.Entries))
		list[i].after = list[i].once
		if f.unaligned(list[i].group) {
			list[i].after *= 2
		}
	}
	return list
}

// unaligned reports whether the array that is group g begins inside of a cache line.
func (f *finder) unaligned(g int) bool { return f.p.Objects[f.groups[g].Objects[0]].Head%f.line() != 0 }

// line is the bytes of a cache line.
func (f *finder) line() int {
	if n := f.p.Run.Cache.LineBytes; n > 0 {
		return n
	}
	return topo.DefaultCaches().LineBytes
}

// strips is the loop of s in the source, if it can go in strips of a cache line of the
// array's fastest dimension; why says why not.
func (f *finder) strips(s spread) (n *nest, why string) {
	x, l, why := f.parallelLoop(s.region)
	name, named := f.variable(s.group)
	elem := f.opt.Shapes[f.groups[s.group].Objects[0]].Elem
	switch {
	case why != "":
		return nil, why
	case !named:
		return nil, "the variable behind " + f.groups[s.group].Name + " is not known"
	case elem <= 0 || int64(f.line())/elem < 2:
		return nil, "the size of its elements is not known, or a line or more"
	}
	n = &nest{file: x, par: l}
	return n, n.strips(name)
}

// strips says why the loop cannot go in strips of its fastest dimension; "" if it can.
func (n *nest) strips(name string) string {
	along := false
	for _, s := range n.file.subscripts(n.file.code[n.par.start:n.par.end], name) {
		if len(s) > 0 {
			if _, along = offset(s[len(s)-1], n.par.Var); !along {
				break
			}
		}
	}
	if s := n.indirect(name); s != "" {
		return fmt.Sprintf("its index %s is read from memory, so which lines an iteration needs follows from the data, not from the loop", s)
	}
	if !along {
		return fmt.Sprintf("%s does not run along the fastest subscript of %s", n.par.Var, name)
	}
	for _, c := range clause.FindAllStringSubmatch(n.par.pragma, -1) {
		if slices.Contains(notKept, c[1]) {
			return fmt.Sprintf("its clause %s cannot be kept", c[0])
		}
	}
	if n.par.Down {
		return "it descends"
	}
	if n.innermost() == n.par {
		return "no loop is inside"
	}
	for l := n.par; len(l.inner) > 0; l = l.inner[0] {
		if len(l.inner) > 1 || !n.only(l, l.inner[0]) {
			return fmt.Sprintf("there are statements beside the loop of line %d", l.inner[0].Line)
		}
		if in := l.inner[0]; words(n.file.code[in.head:in.start], n.par.Var) {
			return fmt.Sprintf("the bounds of line %d depend on %s", in.Line, n.par.Var)
		}
	}
	in := n.innermost()
	body := n.file.code[in.start:in.end]
	if word := leaves.FindString(body); word != "" {
		return fmt.Sprintf("its body has a %s", strings.ToLower(word))
	}
	if name := carried(body); name != "" {
		return fmt.Sprintf("its body may carry %s from one iteration to the next", name)
	}
	return ""
}

// indirect is a subscript of array name that has an element of another in it; "" if there
// is none.
func (n *nest) indirect(name string) string {
	element := regexp.MustCompile(`\w\s*\[`)
	if n.file.language == Fortran {
		element = regexp.MustCompile(`\w\s*\(`)
	}
	for _, s := range slices.Concat(n.file.subscripts(n.file.code[n.par.start:n.par.end], name)...) {
		if element.MatchString(s) {
			return s
		}
	}
	return ""
}

var (
	maybe      = regexp.MustCompile(`(?i)\b(if|else|case)\b`)
	leaves     = regexp.MustCompile(`(?i)\b(break|goto|return|exit)\b`)
	assignment = regexp.MustCompile(`(?:^|[;{}\n(,]|\w[\s*]+|\s)\s*([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?:[^=]|$)`)
)

// carried is a scalar that body assigns to but not before it uses it, so that it may
// have its value from the iteration before; "" if there is none.
func carried(body string) string {
	for _, m := range assignment.FindAllStringSubmatchIndex(body, -1) {
		name := body[m[2]:m[3]]
		first := regexp.MustCompile(`\b` + name + `\b`).FindStringIndex(body)
		rest := strings.TrimLeft(body[m[3]:], " \t")
		value, _, _ := strings.Cut(strings.SplitN(rest, "\n", 2)[0], ";")
		if first[0] < m[2] || !strings.HasPrefix(rest, "=") || words(value, name) || maybe.MatchString(body[:m[2]]) {
			return name
		}
	}
	return ""
}

// innermost is the first of the innermost loops.
func (n *nest) innermost() *loop {
	l := n.par
	for len(l.inner) > 0 {
		l = l.inner[0]
	}
	return l
}

// striped is the loop by strips of length iterations, and a strip around the body of
// the innermost loop. Iterations of a parallel loop are independent, so their order in
// a strip is free.
func (n *nest) striped(length int64) string {
	l, in, file := n.par, n.innermost(), n.file
	strip := freeName(file.code[l.head:l.after], "strip")
	directive := file.text[min(l.directive, l.head):l.head]
	between, body := file.text[l.start:in.start], file.text[in.start:in.end]
	at := file.lines[file.line(in.head)-1]
	indent := file.text[at : at+len(file.text[at:])-len(strings.TrimLeft(file.text[at:], " \t"))]
	if file.language == Fortran {
		return fmt.Sprintf("block\ninteger :: %s\n%sdo %s = %s, %s, %d\n%s%s  do %s = %s, min(%s + %d, %s)\n%s%s  end do\n%send block\n",
			strip, directive, strip, l.Lo, l.Hi, length, between, indent, l.Var, strip, strip, length-1, l.Hi, body, indent, file.text[in.end:l.after])
	}
	kind := l.Type
	if kind == "" {
		kind = "long"
	}
	return fmt.Sprintf("%sfor (%s %s = %s; %s < %s; %s += %d)%s\n%s\tfor (%s %s = %s; %s < %s + %d && %s < %s; %s++)%s",
		directive, kind, strip, l.Lo, strip, l.Hi, strip, length, between, indent,
		kind, l.Var, strip, l.Var, strip, length, l.Var, l.Hi, l.Var, file.text[in.start:l.after])
}
