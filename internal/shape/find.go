package shape

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
	"numaopt/internal/units"
)

// Find returns the shapes of p's objects, by index: those of given, each as Parse
// takes it, and else those that the debug information of p's modules and the source
// of allocations declare; one with a Doubt may be without dimensions. A module whose file is gone or another build tells nothing. An error names the
// entry of given that is no shape, fits no object or not its size.
func Find(p *profile.Profile, modules *symbol.Table, given []string) (map[int]Shape, error) {
	f := &finder{p: p, table: modules, arrays: make(map[*symbol.Module]map[uint64]symbol.Array), sites: make(map[int][]candidate)}
	shapes := make(map[int]Shape)
	for i := range p.Objects {
		o := &p.Objects[i]
		if s, ok := f.shape(o); ok {
			shapes[i] = s
		}
	}
	for _, text := range given {
		if err := set(p, shapes, text); err != nil {
			return nil, err
		}
	}
	return shapes, nil
}

// set gives the objects that text names their shape.
func set(p *profile.Profile, shapes map[int]Shape, text string) error {
	name, s, err := Parse(text)
	if err != nil {
		return err
	}
	groups, _ := access.Groups(p)
	var sizes, names, found []string
	exact := slices.ContainsFunc(groups, func(g access.Group) bool { return g.Name == name })
	for _, g := range groups {
		if g.Kind.Private() || g.Kind == profile.Unknown || g.Kind == profile.Small {
			continue
		}
		if exact && g.Name != name || !access.Called(p, &g, shapes[g.Objects[0]].Variable, name) {
			names = append(names, g.Name)
			continue
		}
		for _, i := range g.Objects {
			if t, ok := s.complete(p.Objects[i].Bytes); ok {
				shapes[i] = t
				if !slices.Contains(found, g.Name) {
					found = append(found, g.Name)
				}
			} else {
				sizes = append(sizes, units.Bytes(p.Objects[i].Bytes).Exact())
			}
		}
	}
	switch {
	case len(found) > 1:
		return fmt.Errorf("--shape %s: %s is not one object but %s; give one of these names", text, name, strings.Join(found, ", "))
	case len(found) == 1:
		return nil
	case len(sizes) > 0:
		return fmt.Errorf("--shape %s: that is %s, but %s has %s; give all dimensions, the slowest first, and the element's bytes",
			text, units.Bytes(s.Bytes()).Exact(), name, sizes[0])
	case len(names) == 0:
		return fmt.Errorf("--shape %s: the profile has no objects of a page or more", text)
	}
	const most = 8
	more := ""
	if len(names) > most {
		names, more = names[:most], ", …"
	}
	return fmt.Errorf("--shape %s: no object is called %q; the profile has %s%s", text, name, strings.Join(names, ", "), more)
}

// finder asks the debug information once for each module and call stack.
type finder struct {
	p      *profile.Profile
	table  *symbol.Table
	arrays map[*symbol.Module]map[uint64]symbol.Array
	sites  map[int][]candidate
}

// shape is what the debug information and the source say of an object.
func (f *finder) shape(o *profile.Object) (Shape, bool) {
	switch {
	case o.Kind == profile.Global:
		m := f.module(o.Module)
		if m == nil {
			return Shape{}, false
		}
		if f.arrays[m] == nil {
			f.arrays[m] = m.Arrays()
		}
		a, ok := f.arrays[m][o.Offset]
		if !ok {
			return Shape{}, false
		}
		return Shape{Dims: a.Dims, Elem: a.Elem, Source: Declared, Variable: a.Variable}.complete(o.Bytes)
	case (o.Kind == profile.Heap || o.Kind == profile.Mapping) && o.Site >= 0:
		return f.allocated(o)
	}
	return Shape{}, false
}

// module opens a module of the profile, nil if its file is not the one that ran.
func (f *finder) module(i int) *symbol.Module {
	if i < 0 {
		return nil
	}
	m, err := f.table.Open(f.p.Modules[i].Path)
	if err != nil || m.BuildID() != f.p.Modules[i].BuildID {
		return nil
	}
	return m
}

// allocated is the array of an allocation: what the variable that its result is
// assigned to points to, at the innermost of its call stack's places where that is
// known. Where several variables get their memory in one line and nothing tells which
// one this is, all that fit its size must be alike.
func (f *finder) allocated(o *profile.Object) (Shape, bool) {
	list, ok := f.sites[o.Site]
	if !ok {
		list = f.candidates(f.p.Sites[o.Site].Frames)
		f.sites[o.Site] = list
	}
	var fits []Shape
	var names []string
	open := ""
	for _, c := range list {
		s, ok := c.fit(o.Bytes)
		switch {
		case ok:
			fits, names = append(fits, s), append(names, c.Variable)
		case c.open():
			open = c.Variable
		}
	}
	switch {
	case len(fits) == 0 && open == "":
		return Shape{}, false
	case len(fits) == 0 || open != "" && len(list) > 1:
		return Shape{Doubt: "the bounds of " + open + " are set at run time"}, true
	case len(fits) == 1:
		return fits[0], true
	}
	one := "one of " + strings.Join(names, ", ") + ", which one line allocates"
	for _, s := range fits {
		if !slices.Equal(s.Dims, fits[0].Dims) || s.Elem != fits[0].Elem {
			return Shape{Doubt: "it is " + one + "; their shapes differ"}, true
		}
	}
	fits[0].Variable, fits[0].Doubt = "", one
	return fits[0], true
}

// candidate is a variable that an allocation may be of.
type candidate struct {
	symbol.Array
	source Source
}

// open reports whether more than the first dimension is not known.
func (c *candidate) open() bool {
	unknown := 0
	for _, n := range c.Dims {
		if n == 0 {
			unknown++
		}
	}
	return unknown > 1 || unknown == 1 && (c.Elem == 0 || c.Dims[0] != 0)
}

// fit is c's shape in an object of this many bytes, if it is one.
func (c *candidate) fit(bytes int64) (Shape, bool) {
	s := Shape{Dims: c.Dims, Elem: c.Elem, Source: c.source, Variable: c.Variable}
	if c.source == Declared {
		return s.complete(bytes)
	}
	// What ALLOCATE asks for is the array to the byte.
	s.Dims = slices.Clone(s.Dims)
	missing := &s.Elem
	for i := range s.Dims {
		if s.Dims[i] != 0 {
			continue
		}
		if *missing == 0 {
			return Shape{}, false
		}
		missing = &s.Dims[i]
	}
	if *missing == 0 {
		*missing = 1
		*missing = bytes / max(1, s.Bytes())
	}
	known := c.Elem != 0 || slices.Contains([]int64{1, 2, 4, 8, 16}, s.Elem)
	return s, known && *missing > 0 && s.Bytes() == bytes
}

// candidates is the variables that an allocation with this call stack may be of; none
// where nobody knows.
func (f *finder) candidates(frames []ident.Code) []candidate {
	for _, c := range frames {
		m := f.module(c.Module)
		if m == nil || len(c.Inlined) == 0 {
			continue
		}
		columns := m.Columns(c.Offset - 1) // the call's, before the address it returns to
		for k, l := range c.Inlined {
			if l.System() || l.Line == 0 {
				continue
			}
			column := 0
			if len(columns) == len(c.Inlined) {
				column = columns[k]
			}
			if list := declared(m, c.Offset-1, l, column); len(list) > 0 {
				return list
			}
		}
	}
	return nil
}

// declared is the variables that the statement at a place of the code at vaddr gives
// memory to, with their types.
func declared(m *symbol.Module, vaddr uint64, at ident.Location, column int) (list []candidate) {
	text := read(at.File)
	if text == nil {
		if a, ok := m.Pointer(vaddr, "", at.Line); ok {
			list = append(list, candidate{a, Declared})
		}
		return list
	}
	if ident.Fortran(at.File) {
		for _, a := range allocate(text, at.Line, column) {
			if known, ok := m.Pointer(vaddr, a.Variable, at.Line); ok && len(known.Dims) == len(a.Dims) {
				a.Elem = known.Elem
			}
			list = append(list, candidate{a, Allocated})
		}
		return list
	}
	for _, name := range assignees(text, at.Line, column) {
		if a, ok := m.Pointer(vaddr, name, at.Line); ok {
			list = append(list, candidate{a, Declared})
		}
	}
	return list
}

// read is the lines of a source file, nil if it is not there.
func read(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// assignment is a name before "=", with what C puts between in a declaration:
// "double (*u)[N][M] = malloc(", "u = new double[n]".
var assignment = regexp.MustCompile(`(?:^|[^\w.>])(\w+)\s*\)?\s*(?:\[[^\]]*\]\s*)*=(?:[^=]|$)`)

// assignees is the variables that a line (from 1) of C assigns to: the one in the
// statement of the call at column, in bytes from 1; all of them if that is 0.
func assignees(text []string, line, column int) (names []string) {
	if line > len(text) {
		return nil
	}
	code := text[line-1]
	for _, m := range assignment.FindAllStringSubmatchIndex(code, -1) {
		switch name := code[m[2]:m[3]]; {
		case column == 0:
			names = append(names, name)
		case m[2] < column-1 && column-1 <= len(code):
			names = nil
			if !strings.Contains(code[m[3]:column-1], ";") {
				names = []string{name}
			}
		}
	}
	return names
}
