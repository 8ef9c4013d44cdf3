package access

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
)

// Only returns p restricted to the accesses from regions that one of names
// matches, see Select. Without names it is p itself.
//
// A name matches a region by its Name ("sweep.c:88 (sweep_x)"), its place
// ("sweep.c:88" or with more of the path), its function or symbol, with or
// without a C++ argument list and namespace, or the start routine of its
// threads. Names of Fortran match in upper and in lower case. A function's name matches all loops in it, and a parallel region's the
// worksharing loops in it. A name that matches
// nothing is an error that lists the names at hand.
func Only(p *profile.Profile, names []string) (*profile.Profile, error) {
	return Select(p, Selection{Loops: names})
}

// Regions tells for each region of p whether one of names matches it, see Only; without
// names all do.
func Regions(p *profile.Profile, names []string) ([]bool, error) {
	if len(names) == 0 {
		return everything(len(p.Regions)), nil
	}
	in := make([]bool, len(p.Regions))
	for _, name := range names {
		found := false
		for i := range p.Regions {
			if matches(&p.Regions[i], name) {
				in[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("no loop or function is called %q; the profile has %s", name, namesAtHand(p))
		}
	}
	for i := range p.Regions {
		if in[i] && p.Regions[i].Kind == profile.Loop && !p.Regions[i].Worksharing() {
			addLoops(p, i, in)
		}
	}
	return in, nil
}

// addLoops takes the worksharing loops of parallel region i in.
func addLoops(p *profile.Profile, i int, in []bool) {
	at := p.Regions[i].Code
	for k := range p.Regions {
		r := &p.Regions[k]
		in[k] = in[k] || r.Worksharing() && r.Code.Module == at.Module && r.Code.Offset == at.Offset
	}
}

func matches(r *profile.Region, name string) bool {
	if name == "" {
		return false
	}
	if ident.Fortran(r.File) {
		low := *r
		low.Name, low.Function, low.Code.Symbol = strings.ToLower(r.Name), strings.ToLower(r.Function), strings.ToLower(r.Code.Symbol)
		return matchesExactly(&low, strings.ToLower(name)) || samePlace(r, name)
	}
	return matchesExactly(r, name) || samePlace(r, name)
}

// matchesExactly is matches but for places.
func matchesExactly(r *profile.Region, name string) bool {
	if name == r.Name || name == r.Code.Symbol || name == string(profile.Serial) && r.Kind == profile.Serial {
		return true
	}
	functions := []string{r.Function, r.Thread}
	for _, l := range r.Code.Inlined {
		functions = append(functions, l.Function)
	}
	for _, f := range functions {
		if sameFunction(f, name) {
			return true
		}
	}
	return false
}

// sameFunction compares a demangled function with what a person types: with or
// without arguments, with or without leading namespaces and classes.
func sameFunction(function, name string) bool {
	if function == "" {
		return false
	}
	plain := WithoutArguments(function)
	return name == function || name == plain || strings.HasSuffix(plain, "::"+name)
}

// WithoutArguments cuts the argument list off a demangled name; the parentheses
// of "(anonymous namespace)::f(int)" and "operator()(int)" stay.
func WithoutArguments(function string) string {
	f := strings.TrimSuffix(function, " const")
	if !strings.HasSuffix(f, ")") {
		return function
	}
	depth := 0
	for i := len(f) - 1; i > 0; i-- {
		switch f[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth > 0 {
				continue
			}
			if rest := f[:i]; !strings.HasSuffix(rest, "operator") && !strings.HasSuffix(rest, "::") {
				return rest
			}
			return function
		}
	}
	return function
}

func samePlace(r *profile.Region, name string) bool {
	i := strings.LastIndexByte(name, ':')
	if i <= 0 || r.File == "" || r.Line == 0 {
		return false
	}
	line, err := strconv.Atoi(name[i+1:])
	if err != nil || line != r.Line {
		return false
	}
	file := path.Clean(name[:i])
	return file == r.File || strings.HasSuffix(r.File, "/"+file)
}

// namesAtHand lists the regions of p: loops before others, of each those with most
// accesses first.
func namesAtHand(p *profile.Profile) string {
	sums := ByRegion(p)
	return atHand(len(p.Regions), func(i int) (string, uint64) {
		n := sums[i].All.Total()
		if p.Regions[i].Kind == profile.Loop {
			n += 1 << 63
		}
		return p.Regions[i].Name, n
	})
}

// atHand lists the names of n things for a message, the weightiest first.
func atHand(n int, thing func(i int) (name string, weight uint64)) string {
	const most = 12
	type named struct {
		name   string
		weight uint64
	}
	var list []named
	for i := range n {
		if name, weight := thing(i); name != "" {
			list = append(list, named{name, weight})
		}
	}
	slices.SortStableFunc(list, func(a, b named) int { return cmp.Compare(b.weight, a.weight) })
	var names []string
	seen := make(map[string]bool)
	for _, x := range list {
		if !seen[x.name] {
			seen[x.name] = true
			names = append(names, x.name)
		}
	}
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
