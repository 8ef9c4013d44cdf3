package advice

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// stored is an array element that is assigned to: its name.
var (
	storedC       = regexp.MustCompile(`^\s*(?:[-+*/%&|^]|<<|>>)?=(?:[^=]|$)|^\s*(?:\+\+|--)`)
	storedFortran = regexp.MustCompile(`^\s*=(?:[^=]|$)`)
)

// stored is what stands behind an element that is assigned to.
func (f *file) stored() *regexp.Regexp {
	if f.language == Fortran {
		return storedFortran
	}
	return storedC
}

// assigns reports whether code assigns to elements of array name.
func (f *file) assigns(code, name string) bool {
	return slices.ContainsFunc(f.references(code, name), func(r reference) bool { return f.stored().MatchString(code[r.end:]) })
}

// crossing is the dependence between iterations of the parallel loop l of one instance,
// as far as subscripts show it: an element that one reads and another writes. Such a
// loop is right only because its threads wait for each other, in the order of the parts
// that they have. "" is none that is seen.
func (f *file) crossing(l *loop) string {
	code, is := f.code[l.start:l.end], f.stored()
	var names []string
	for _, name := range word.FindAllString(code, -1) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		var stores, reads []reference
		for _, r := range f.references(code, name) {
			if is.MatchString(code[r.end:]) {
				stores = append(stores, r)
			} else {
				reads = append(reads, r)
			}
		}
		for _, w := range stores {
			for _, r := range reads {
				if f.meet(l, w.subscripts, r.subscripts) {
					return fmt.Sprintf("an iteration reads %s (line %d), which another one writes as %s, so its threads wait for each other in the order of their parts",
						squeezed(code[r.at:r.end]), f.line(l.start+r.at), squeezed(code[w.at:w.end]))
				}
			}
		}
	}
	return ""
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

// meet reports whether two subscripts are seen to be of one element in two iterations
// of l: apart along its variable, and along no other dimension.
func (f *file) meet(l *loop, a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	apart := false
	for i := range a {
		x, y := squeezed(a[i]), squeezed(b[i])
		j, ok := offset(x, l.Var)
		k, too := offset(y, l.Var)
		switch {
		case ok && too && j != k:
			apart = true
		case words(x+" "+y, l.Var), !f.sameLine(l, x, y):
			return false
		}
	}
	return apart
}

// sameLine reports whether two subscripts, without the variable of l, may be equal in
// one instance of l. Variables of loops in it that are not by 1 may keep them apart, as
// in a red-black sweep.
func (f *file) sameLine(l *loop, x, y string) bool {
	for _, in := range f.loops {
		if in.head < l.start || in.after > l.end {
			continue
		}
		if in.Var == "" && words(x+" "+y, word.FindAllString(f.code[in.head:in.start], -1)...) {
			return false
		}
		if in.Var != "" && words(x, in.Var) && words(y, in.Var) {
			return true
		}
	}
	return x == y
}
