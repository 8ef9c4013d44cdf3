package diff

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
)

// frame is one function of a call stack, by names that survive a rebuild.
type frame struct {
	file, function string
	line           int // from the function's declaration
}

// frames are those of code, innermost inlined function first.
func frames(p *profile.Profile, c ident.Code) []frame {
	var list []frame
	for _, l := range c.Inlined {
		line := l.Line
		if l.FunctionLine > 0 {
			line -= l.FunctionLine
		}
		list = append(list, frame{path.Base(l.File), l.Function, line})
	}
	if len(list) == 0 {
		list = []frame{{function: nameless(p, c)}}
	}
	return list
}

// nameless is what is known of code without debug information.
func nameless(p *profile.Profile, c ident.Code) string {
	if c.Symbol != "" {
		return symbol.Demangle(c.Symbol)
	}
	return access.CodeName(p, c)
}

// ownStack is the program's own frames of a call stack, innermost first: what a system
// library does between them changes with the system.
func ownStack(p *profile.Profile, site int) []frame {
	var list []frame
	for _, c := range p.Sites[site].Frames {
		if c.Module >= 0 && access.SystemModule(p.Modules[c.Module].Path) {
			continue
		}
		list = append(list, frames(p, c)...)
	}
	return list
}

// describe sets the families and the place of an item of kind that list leads to.
func (x *item) describe(kind string, list []frame) {
	full, short := []string{kind}, []string{kind}
	for i, f := range list {
		full = append(full, f.file+":"+f.function)
		x.place = append(x.place, list[len(list)-1-i].line)
	}
	if len(list) > 0 {
		short = append(short, access.WithoutArguments(list[0].function))
	}
	x.families = []string{strings.Join(full, "\n"), strings.Join(short, "\n")}
}

// exactly is code in a build; empty where the build is not known.
func exactly(p *profile.Profile, c ident.Code) string {
	if c.Module < 0 || p.Modules[c.Module].BuildID == "" {
		return ""
	}
	return fmt.Sprintf("%s+%x", p.Modules[c.Module].BuildID, c.Offset)
}

// localStatic is what gcc and clang put behind the name of a static variable of a
// function: a number that any edit changes.
var localStatic = regexp.MustCompile(`\.\d+$`)

// objectItem names a group of objects.
func objectItem(p *profile.Profile, g *access.Group) item {
	o := &p.Objects[g.Objects[0]]
	var x item
	switch {
	case o.Kind == profile.Global:
		name := localStatic.ReplaceAllString(symbol.Demangle(o.Symbol), "")
		if o.Symbol == "" { // a stripped file
			name = g.Name
		}
		x.describe("global", []frame{{file: path.Base(o.File), function: name}})
		x.offset = o.Offset
	case o.Site >= 0:
		kind := "allocated"
		if o.Kind == profile.Mapping {
			kind = "mapping"
		}
		stack := ownStack(p, o.Site)
		if len(stack) == 0 {
			stack = []frame{{function: o.Name}}
		}
		x.describe(kind, stack)
		x.exact = exactStack(p, o.Site)
		if f := p.Sites[o.Site].Frames; len(f) > 0 {
			x.offset = f[0].Offset
		}
	default:
		x.describe(string(o.Kind), []frame{{function: g.Name}})
	}
	return x
}

func exactStack(p *profile.Profile, site int) string {
	var all []string
	for _, c := range p.Sites[site].Frames {
		code := exactly(p, c)
		if code == "" {
			return ""
		}
		all = append(all, code)
	}
	return strings.Join(all, "\n")
}

// loopItem names a region.
func loopItem(p *profile.Profile, i int) item {
	r := &p.Regions[i]
	kind, code := string(r.Kind), r.Code
	if r.Worksharing() {
		kind, code = "worksharing loop", r.Site
	}
	f := frame{path.Base(r.File), r.Function, 0}
	if f.function == "" {
		f = frame{function: access.RegionName(p, i)}
	} else if r.Kind == profile.Loop {
		f.line = r.Line - declared(r, code)
	}
	x := item{offset: code.Offset}
	x.describe(kind+" "+r.Thread, []frame{f})
	if at := exactly(p, code); at != "" && r.Kind != profile.Serial {
		x.exact = kind + " " + r.Thread + " " + at
	}
	return x
}

// declared is the line where the function of a loop is declared; 0 is not known.
func declared(r *profile.Region, code ident.Code) int {
	for _, l := range code.Inlined {
		if l.Function == r.Function {
			return l.FunctionLine
		}
	}
	return 0
}
