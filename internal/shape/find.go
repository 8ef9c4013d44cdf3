package shape

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
	"numaopt/internal/units"
)

// Find returns the shapes of p's objects, by index: those of given, each as Parse
// takes it, and else those that the debug information of p's modules declares. A
// module whose file is gone or another build tells nothing. An error names the
// entry of given that is no shape, fits no object or not its size.
func Find(p *profile.Profile, modules *symbol.Table, given []string) (map[int]Shape, error) {
	f := &finder{p: p, table: modules, arrays: make(map[*symbol.Module]map[uint64]symbol.Array), sites: make(map[int]symbol.Array)}
	shapes := make(map[int]Shape)
	for i := range p.Objects {
		o := &p.Objects[i]
		a, ok := f.array(o)
		if !ok {
			continue
		}
		s := Shape{Dims: a.Dims, Elem: a.Elem, Source: Declared, Variable: a.Variable}
		if s, ok = s.complete(o.Bytes); ok {
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
	var sizes, names []string
	found := false
	for _, g := range groups {
		if g.Kind.Private() || g.Kind == profile.Unknown || g.Kind == profile.Small {
			continue
		}
		if plain, _, _ := strings.Cut(g.Name, " "); name != g.Name && name != plain && name != p.Objects[g.Objects[0]].Symbol {
			names = append(names, g.Name)
			continue
		}
		for _, i := range g.Objects {
			if t, ok := s.complete(p.Objects[i].Bytes); ok {
				shapes[i], found = t, true
			} else {
				sizes = append(sizes, units.Bytes(p.Objects[i].Bytes).Exact())
			}
		}
	}
	switch {
	case found:
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
	sites  map[int]symbol.Array
}

// array is what the debug information says of an object.
func (f *finder) array(o *profile.Object) (symbol.Array, bool) {
	switch {
	case o.Kind == profile.Global:
		m := f.module(o.Module)
		if m == nil {
			return symbol.Array{}, false
		}
		if f.arrays[m] == nil {
			f.arrays[m] = m.Arrays()
		}
		a, ok := f.arrays[m][o.Offset]
		return a, ok
	case (o.Kind == profile.Heap || o.Kind == profile.Mapping) && o.Site >= 0:
		a, ok := f.sites[o.Site]
		if !ok {
			a = f.assigned(f.p.Sites[o.Site].Frames)
			f.sites[o.Site] = a
		}
		return a, a.Elem > 0
	}
	return symbol.Array{}, false
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

// assigned is the array that the result of an allocation is assigned to, at the
// innermost of a call stack's places where it is known; the zero Array if nowhere.
func (f *finder) assigned(frames []ident.Code) symbol.Array {
	for _, c := range frames {
		m := f.module(c.Module)
		if m == nil || len(c.Inlined) == 0 {
			continue
		}
		for _, l := range c.Inlined {
			if l.System() || l.Line == 0 {
				continue
			}
			// The line of the call is that before the address it returns to.
			name, read := assignee(l.File, l.Line)
			if read && name == "" {
				continue
			}
			if a, ok := m.Pointer(c.Offset-1, name, l.Line); ok {
				return a
			}
		}
	}
	return symbol.Array{}
}

// assignment is a name before "=", with what C puts between in a declaration:
// "double (*u)[N][M] = malloc(", "u = new double[n]".
var assignment = regexp.MustCompile(`(?:^|[^\w.>])(\w+)\s*\)?\s*(?:\[[^\]]*\]\s*)*=(?:[^=]|$)`)

// assignee is the variable that a line of a source file assigns to; read is false
// where the file cannot be read.
func assignee(file string, line int) (name string, read bool) {
	f, err := os.Open(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		if n < line {
			continue
		}
		if m := assignment.FindStringSubmatch(s.Text()); m != nil {
			name = m[1]
		}
		return name, true
	}
	return "", false
}
