package check

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Place is a line of source at which pages were first touched that threads of other
// nodes then access.
type Place struct {
	Object string `json:"object"`
	// File is as the debug information has it, after Result.Relative below the root
	// with slashes; empty is not known.
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
	// Serial is code outside of loops, while no other thread had touched the page.
	Serial bool `json:"serial"`
	// Allocated says that the line is that of the allocation: the one of the first touch
	// is not known.
	Allocated bool `json:"allocated"`
	// RemotePct is the share of the remote accesses of the program, object or loop.
	RemotePct float64 `json:"remote_share_pct"`
}

// mostPlaces and leastShare keep to the lines that a change would have to be made in:
// the rest of the remote accesses comes from many.
const (
	mostPlaces = 3
	leastShare = 10 // per cent
)

// findTouches numbers the first touches of pages.
func (s *summer) findTouches() {
	index := make(map[Place]int)
	s.touchOf = make([]int, len(s.p.Pages))
	for i := range s.p.Pages {
		at := s.touch(&s.p.Pages[i])
		n, ok := index[at]
		if !ok {
			n = len(s.touches)
			index[at] = n
			s.touches = append(s.touches, at)
		}
		s.touchOf[i] = n
	}
}

func (s *summer) touch(page *profile.Page) Place {
	at := Place{Object: ident.Printable(s.groups[s.groupOf[page.Object]].Name), Serial: page.Serial}
	if page.Place >= 0 {
		if l, ok := access.Source(s.p, s.p.Places[page.Place]); ok {
			at.File, at.Line, at.Function = l.File, l.Line, l.Function
			return at
		}
	}
	o := &s.p.Objects[page.Object]
	at.Allocated = true
	if at.File, at.Line = o.File, o.Line; o.Site < 0 {
		return at
	}
	for _, f := range s.p.Sites[o.Site].Frames {
		if l, ok := access.Source(s.p, f); ok {
			at.File, at.Line, at.Function = l.File, l.Line, l.Function
			break
		}
	}
	return at
}

// places is by key the lines where the pages of its remote accesses were touched first.
func (s *summer) places(n int, key func(*profile.Row) int) [][]Place {
	type at struct{ key, touch int }
	remote := make([]uint64, n)
	counts := make(map[at]uint64)
	for i := range s.p.Rows {
		r := &s.p.Rows[i]
		home := s.p.Pages[r.Page].Home
		if k := key(r); k >= 0 && (s.metric == All || r.Level == profile.DRAM) && home != topo.Unknown && home != s.p.Threads[r.Thread].Node {
			counts[at{k, s.touchOf[r.Page]}] += r.Count
			remote[k] += r.Count
		}
	}
	lists := make([][]Place, n)
	for k, count := range counts {
		x := s.touches[k.touch]
		if x.RemotePct = access.Pct(count, remote[k.key]); x.RemotePct >= leastShare && x.Line > 0 {
			lists[k.key] = append(lists[k.key], x)
		}
	}
	for i, list := range lists {
		slices.SortFunc(list, func(a, b Place) int {
			return cmp.Or(cmp.Compare(b.RemotePct, a.RemotePct), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object))
		})
		lists[i] = list[:min(mostPlaces, len(list))]
	}
	return lists
}

// String is how a reader finds the place.
func (x *Place) String() string {
	s := fmt.Sprintf("%s:%d", filepath.Base(x.File), x.Line)
	if x.Function != "" {
		s += " (" + x.Function + ")"
	}
	return ident.Printable(s)
}

// what says of the line what was done there.
func (x *Place) what() string {
	switch {
	case x.Allocated:
		return "allocated"
	case x.Serial:
		return "first touched in serial code"
	}
	return "first touched"
}

// Relative makes the files of r's places relative to root, the folder that a repository
// is checked out to. A file that was compiled elsewhere is found by the longest end of
// its path that exists below root; one that is not there keeps its path. exists tells
// whether root has a file.
func (r *Result) Relative(root string, exists func(file string) bool) {
	for _, f := range r.figures() {
		for i := range f.Places {
			f.Places[i].File = relative(f.Places[i].File, root, exists)
		}
	}
}

func relative(file, root string, exists func(string) bool) string {
	if rel, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(rel) && exists(rel) {
		return filepath.ToSlash(rel)
	}
	parts := strings.Split(strings.TrimPrefix(filepath.ToSlash(file), "/"), "/")
	for i := range parts {
		if end := strings.Join(parts[i:], "/"); filepath.IsLocal(end) && exists(end) {
			return end
		}
	}
	return file
}
