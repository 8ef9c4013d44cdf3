package access

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// Group is the objects that a reader takes for one: all allocations of a call
// stack, a symbol, all stacks, the program's image.
type Group struct {
	Kind profile.Kind
	// Name is unique among the groups of its kind: where sites share a name, the
	// caller in which their call stacks differ follows it.
	Name    string
	Objects []int // indices into the profile's objects, ascending; never empty
	// Bytes is the most that was allocated at one time, as far as the profile
	// knows; 0 for stacks, image and unknown memory.
	Bytes units.Bytes
}

// Groups returns the groups of p's objects and for each object the index of its
// group.
func Groups(p *profile.Profile) (groups []Group, of []int) {
	type key struct {
		kind         profile.Kind
		site, module int
		symbol       string
		offset       uint64
	}
	index := make(map[key]int)
	of = make([]int, len(p.Objects))
	for i := range p.Objects {
		o := &p.Objects[i]
		k := key{kind: o.Kind, site: -1, module: -1}
		name := o.Name
		switch o.Kind {
		case profile.Stack:
			name = "thread stacks"
		case profile.Image:
			name = "program and libraries"
		case profile.Unknown:
			name = "unknown memory"
		case profile.Global:
			k.module, k.symbol, k.offset = o.Module, o.Symbol, o.Offset
		default:
			if k.site = o.Site; o.Site < 0 {
				k.symbol = o.Name // without a call stack the name is all there is
			}
		}
		g, ok := index[k]
		if !ok {
			g = len(groups)
			index[k] = g
			groups = append(groups, Group{Kind: o.Kind, Name: name})
		}
		groups[g].Objects = append(groups[g].Objects, i)
		of[i] = g
	}
	for i := range groups {
		if k := groups[i].Kind; !k.Private() && k != profile.Unknown {
			groups[i].Bytes = peak(p, groups[i].Objects)
		}
	}
	tellApart(p, groups)
	return groups, of
}

// peak adds up, for each rank, the instances that live at the same time, and
// takes the most: an instance that does not overlap an earlier one is the same
// buffer again.
func peak(p *profile.Profile, objects []int) units.Bytes {
	order := slices.Clone(objects)
	slices.SortFunc(order, func(a, b int) int {
		x, y := &p.Objects[a], &p.Objects[b]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	var sum, most, live int64
	for i, o := range order {
		x := &p.Objects[o]
		if i > 0 && p.Objects[order[i-1]].Rank != x.Rank {
			sum, most, live = sum+most, 0, 0
		}
		if !x.Overlaps {
			live = 0
		}
		live += x.Bytes
		most = max(most, live)
	}
	return units.Bytes(sum + most)
}

// tellApart gives groups of one kind and one name different names.
func tellApart(p *profile.Profile, groups []Group) {
	type key struct {
		kind profile.Kind
		name string
	}
	same := make(map[key][]int)
	for i, g := range groups {
		k := key{g.Kind, g.Name}
		same[k] = append(same[k], i)
	}
	for _, list := range same {
		if len(list) < 2 {
			continue
		}
		depth := firstDifference(p, groups, list)
		taken := make(map[string]int)
		for _, i := range list {
			o := &p.Objects[groups[i].Objects[0]]
			name := groups[i].Name
			switch {
			case o.Site >= 0 && depth >= 0 && depth < len(p.Sites[o.Site].Frames):
				name += " from " + CodeName(p, p.Sites[o.Site].Frames[depth])
			case o.Site < 0 && o.Module >= 0:
				name += " of " + path.Base(p.Modules[o.Module].Path)
			}
			if taken[name]++; taken[name] > 1 {
				name = fmt.Sprintf("%s #%d", name, taken[name])
			}
			groups[i].Name = name
		}
	}
}

// firstDifference returns the first frame whose text is not the same in the call
// stacks of all groups in list; -1 if there is none.
func firstDifference(p *profile.Profile, groups []Group, list []int) int {
	frames := func(i int) []ident.Code {
		if s := p.Objects[groups[i].Objects[0]].Site; s >= 0 {
			return p.Sites[s].Frames
		}
		return nil
	}
	for depth := 0; ; depth++ {
		text := make(map[string]bool)
		deeper := false
		for _, i := range list {
			if f := frames(i); depth < len(f) {
				deeper = true
				text[CodeName(p, f[depth])] = true
			} else {
				text[""] = true
			}
		}
		if !deeper {
			return -1
		}
		if len(text) > 1 {
			return depth
		}
	}
}

// RegionName is the name of region i as it is passed to Only; "serial" where nothing
// is known of the code.
func RegionName(p *profile.Profile, i int) string {
	switch r := &p.Regions[i]; {
	case r.Name != "":
		return r.Name
	case r.Kind == profile.Serial:
		return string(profile.Serial)
	default:
		return CodeName(p, r.Code)
	}
}

// CodeName is how a reader finds c: "file.c:42 (f)" in code that is compiled
// with debug information, past what is inlined from a language's library; "memset
// in libc.so.6" in the system's libraries and where only the symbol is known;
// failing that "module+0x1234"; "?" where nothing is known.
func CodeName(p *profile.Profile, c ident.Code) string {
	module := ""
	if c.Module >= 0 {
		module = p.Modules[c.Module].Path
	}
	if l, ok := Location(p, c); ok {
		switch {
		case l.File != "" && l.Line > 0 && l.Function != "":
			return fmt.Sprintf("%s:%d (%s)", path.Base(l.File), l.Line, WithoutArguments(l.Function))
		case l.File != "" && l.Line > 0:
			return fmt.Sprintf("%s:%d", path.Base(l.File), l.Line)
		case l.Function != "":
			return WithoutArguments(l.Function)
		}
	}
	symbol := c.Symbol
	if symbol == "" && len(c.Inlined) > 0 {
		symbol = c.Inlined[len(c.Inlined)-1].Function
	}
	switch {
	case symbol != "" && module != "":
		return fmt.Sprintf("%s in %s", symbol, path.Base(module))
	case symbol != "":
		return symbol
	case module != "":
		return fmt.Sprintf("%s+%#x", path.Base(module), c.Offset)
	}
	return "?"
}

// Location is the innermost location of c that is not of a language's library; false
// where there is no debug information, or the code is one of the system's libraries.
func Location(p *profile.Profile, c ident.Code) (ident.Location, bool) {
	if c.Module >= 0 && SystemModule(p.Modules[c.Module].Path) {
		return ident.Location{}, false
	}
	for _, l := range c.Inlined {
		if !l.System() {
			return l, true
		}
	}
	if len(c.Inlined) > 0 {
		return c.Inlined[0], true
	}
	return ident.Location{}, false
}

// SystemModule reports whether a file is one of the system's libraries: nobody
// looks for a fault by their source lines.
func SystemModule(file string) bool {
	return strings.HasPrefix(file, "/lib") || strings.HasPrefix(file, "/usr/lib")
}
