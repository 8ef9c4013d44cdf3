package advice

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/classify"
	"numaopt/internal/profile"
)

// loopsOf is the names of the regions that make most of the accesses that weight
// counts, four at most.
func (f *finder) loopsOf(weight map[int]float64) (list []string) {
	var order []int
	for i := range weight {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	for _, i := range order {
		if name := f.region(i); len(list) < 4 && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// page is the accesses to a page, or to a part of one, by node, and how many are remote
// with the plan.
type page struct {
	use    []float64
	before float64
}

// pageOf is the page of r in pages, with r's remote accesses.
func (f *finder) pageOf(pages map[int]*page, r *profile.Row) *page {
	return f.pageIn(pages, int(r.Page), r)
}

// pageIn is the same under another number.
func (f *finder) pageIn(pages map[int]*page, number int, r *profile.Row) *page {
	x := pages[number]
	if x == nil {
		x = &page{use: make([]float64, f.n)}
		pages[number] = x
	}
	x.before += float64(f.plan.Remote(r))
	return x
}

// most is the accesses by the node that makes most, and by all.
func (x *page) most() (most, all float64) {
	for _, c := range x.use {
		most, all = max(most, c), all+c
	}
	return most, all
}

// initial tells for each region whether it is over before the computation: code of
// the main thread outside loops, and loops that are entered once.
func (f *finder) initial() []bool {
	is := access.SerialRegions(f.p)
	for i := range is {
		r := &f.p.Regions[i]
		is[i] = is[i] || r.Kind == profile.Loop && r.Entries == 1 && r.Invocations <= 1
	}
	return is
}

// ofProgram reports whether group g is the program's own: what an OpenMP runtime
// allocates is nobody's to change.
func (f *finder) ofProgram(g int) bool {
	o := &f.p.Objects[f.groups[g].Objects[0]]
	if o.Module >= 0 && OfRuntime(f.p.Modules[o.Module].Path) {
		return false
	}
	if o.Site < 0 || len(f.p.Sites[o.Site].Frames) == 0 {
		return true
	}
	m := f.p.Sites[o.Site].Frames[0].Module
	return m < 0 || !OfRuntime(f.p.Modules[m].Path)
}

// OfRuntime reports whether a file is that of an OpenMP runtime.
func OfRuntime(file string) bool {
	for _, name := range []string{"libgomp", "libomp", "libiomp"} {
		if strings.HasPrefix(path.Base(file), name) {
			return true
		}
	}
	return false
}

// variable is the program's own name of group g; named is false where nobody knows it.
func (f *finder) variable(g int) (name string, named bool) {
	o := f.groups[g].Objects[0]
	name, _, _ = strings.Cut(f.p.Objects[o].Symbol, ".") // a static variable of a function is "row.0"
	if v := f.opt.Shapes[o].Variable; v != "" {
		name = v
	}
	return name, isIdentifier(name)
}

// shapeOption is how --shape names group g: by the first word of its name, or all of it
// where that is another's, too.
func (f *finder) shapeOption(g int) string {
	const dims = "=N1,N2,…:BYTES"
	first := strings.Fields(f.groups[g].Name)[0]
	for i := range f.groups {
		if i != g && strings.HasPrefix(f.groups[i].Name+" ", first+" ") {
			return "'" + f.groups[g].Name + dims + "'"
		}
	}
	return first + dims
}

// unknownName says that nobody knows the variable behind group g, and what the text calls
// it.
func (f *finder) unknownName(g int, name string) string {
	why := ""
	if d := f.opt.Shapes[f.groups[g].Objects[0]].Doubt; d != "" {
		why = " (" + d + ")"
	}
	return fmt.Sprintf("The variable behind %s is not known%s; the text calls it %s.", f.groups[g].Name, why, name)
}

// several says which allocations nothing can be advised for as they are several arrays
// of one call stack.
func (f *finder) several() (notes []string) {
	for g := range f.groups {
		x := &f.groups[g]
		if len(x.Objects) < 2 || f.taken[g] || !f.matters(f.far[g]) || !classify.Placeable(x.Kind) {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s is %d allocations of one call stack, which leave %.1f points remote. What loops want of them is told of all together, as if they lay one behind the other, and no distribution of one array is advised: if they are different arrays, allocate each in a statement of its own; if they are the rows of one, allocate it in one piece.",
			x.Name, len(x.Objects), 100*f.far[g]/f.known))
	}
	return notes
}
