// Package annotate answers which lines of source make the DRAM accesses: how many, how
// many of them remote, to which objects, and how long their loads took.
//
// # Input
//
// A profile with uses of code, perhaps restricted to some regions by access.Only.
//
// # Output
//
// One Line for each line of source, those with most DRAM accesses first; Files has
// them in the order of the source.
//
// # Method
//
// An instruction is of the innermost line that is not of a language's library: an
// inlined operator[] is the line that indexes. Under emulation, what a system library
// or the runtime accesses is of the line that last called out of the program.
//
// # Limits
//
// A line is as good as the debug information: compilers move and merge instructions.
// Sampling puts some accesses an instruction too far, see the package sample.
package annotate

import (
	"cmp"
	"math"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
)

// Line is a line of source, or code of which no line is known.
type Line struct {
	// Name is how a reader finds it, "solve.c:42 (solve)"; see access.CodeName.
	Name string
	// Location has no File where no line is known.
	ident.Location
	DRAM access.Flow
	// Stores are those of DRAM that store.
	Stores uint64
	// Loads are those of DRAM with a latency, Cycles its sum.
	Loads, Cycles uint64
	Objects       []Object // most DRAM accesses first
}

// Object is what a line accesses of one group of objects.
type Object struct {
	Group int // index of access.Groups
	DRAM  access.Flow
}

// Latency is the mean of the line's loads from DRAM in cycles; NaN where it is not known.
func (l *Line) Latency() float64 {
	if l.Loads == 0 {
		return math.NaN()
	}
	return float64(l.Cycles) / float64(l.Loads)
}

// Lines returns the lines of p's uses of code, those with most DRAM accesses first.
// groupOf is the group of each object, see access.Groups.
func Lines(p *profile.Profile, groupOf []int) []Line {
	b := &builder{p: p, lineOf: make([]int, len(p.Codes)), index: map[key]int{}, objectOf: map[[2]int]int{}}
	for i := range b.lineOf {
		b.lineOf[i] = -1
	}
	for i := range p.CodeUses {
		b.add(&p.CodeUses[i], groupOf)
	}
	for i := range b.lines {
		slices.SortFunc(b.lines[i].Objects, func(x, y Object) int {
			return cmp.Or(cmp.Compare(y.DRAM.Total(), x.DRAM.Total()), cmp.Compare(x.Group, y.Group))
		})
	}
	slices.SortFunc(b.lines, func(x, y Line) int {
		return cmp.Or(cmp.Compare(y.DRAM.Total(), x.DRAM.Total()), compare(&x, &y))
	})
	return b.lines
}

func compare(x, y *Line) int {
	return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Name, y.Name))
}

// key tells lines apart: by their place, or by name where it is not known.
type key struct {
	file string
	line int
	name string
}

type builder struct {
	p        *profile.Profile
	lines    []Line
	lineOf   []int // by code, -1 is not yet
	index    map[key]int
	objectOf map[[2]int]int // line and group → index in its Objects
}

func (b *builder) add(u *profile.CodeUse, groupOf []int) {
	at := b.line(int(u.Code))
	l := &b.lines[at]
	flow := access.Flow{Local: u.Local, Remote: u.Remote, Unknown: u.Unknown}
	l.DRAM.Merge(flow)
	if u.Op == profile.Store {
		l.Stores += u.Total()
	}
	l.Loads += u.Loads
	l.Cycles += u.Latency
	k := [2]int{at, groupOf[u.Object]}
	o, ok := b.objectOf[k]
	if !ok {
		o = len(l.Objects)
		b.objectOf[k] = o
		l.Objects = append(l.Objects, Object{Group: k[1]})
	}
	l.Objects[o].DRAM.Merge(flow)
}

// line is the index of the line of a code.
func (b *builder) line(code int) int {
	if b.lineOf[code] >= 0 {
		return b.lineOf[code]
	}
	c := b.p.Codes[code]
	l, ok := access.Location(b.p, c)
	name := access.CodeName(b.p, c)
	if !ok || l.File == "" || l.Line == 0 {
		l.File, l.Line = "", 0
	}
	k := key{file: l.File, line: l.Line}
	if l.File == "" {
		k.name = name
	}
	i, ok := b.index[k]
	if !ok {
		i = len(b.lines)
		b.index[k] = i
		b.lines = append(b.lines, Line{Name: name, Location: l})
	}
	b.lineOf[code] = i
	return i
}

// File is a source file with its lines in order.
type File struct {
	Path  string // as in the debug information
	Lines []Line
	DRAM  access.Flow
}

// Files returns the source files of lines, those with most DRAM accesses first. Lines
// of no known place are not in them.
func Files(lines []Line) []File {
	sorted := slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.File == "" })
	slices.SortFunc(sorted, func(x, y Line) int { return compare(&x, &y) })
	var files []File
	for _, l := range sorted {
		if n := len(files); n == 0 || files[n-1].Path != l.File {
			files = append(files, File{Path: l.File})
		}
		f := &files[len(files)-1]
		f.Lines = append(f.Lines, l)
		f.DRAM.Merge(l.DRAM)
	}
	slices.SortStableFunc(files, func(x, y File) int { return cmp.Compare(y.DRAM.Total(), x.DRAM.Total()) })
	return files
}
