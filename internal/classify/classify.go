// Package classify tells what kind of page each page is: private, used from one
// node, or uniformly shared; and which objects were initialised serially and
// then used in parallel.
//
// # Input
//
// A profile, perhaps restricted to some loops by access.Only.
//
// # Output
//
// A Page for each page of the profile, Sharing as shares of pages, bytes and
// accesses, and the SerialInit findings.
//
// # Method
//
// CGO'12 §2.2 and §3.1. A page is touched by the threads that have a row for
// it, and by the thread that touched it first. Pages of stacks and of the
// program's image are private. Of the others, those touched by threads of one
// node only are non-shared, those touched by threads of several nodes are
// uniformly shared, whatever the counts. A uniformly shared page that is touched
// from one node at most once serial code is left out is shared only through
// serial initialisation; serial code is what the main thread alone runs outside
// loops.
//
// # Limits
//
// All pages are base pages. Each page of each instance of an object counts, so
// memory that was freed and allocated again counts again; so does a page that
// lost its home and got another. In a sampled profile a page
// can be touched from a node without being seen there: sharing is undercounted
// until every page has several samples of each thread that uses it. The papers'
// non-shared pages are those of a single thread; these are the part OneThread.
package classify

import (
	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Class is the kind of a page.
type Class uint8

// The classes, see the package comment.
const (
	Private Class = iota
	NonShared
	UniformlyShared
)

// Options are the thresholds of Pages.
type Options struct {
	// EvenMargin is by how much, in [0,1], the share of the node that uses a
	// page most may exceed an equal share of all its users before the page
	// counts as belonging there. With 0.1 two users are even up to 60:40 and
	// four up to 35 %: moving such a page saves a tenth of its accesses at most.
	EvenMargin float64
}

// DefaultOptions are the thresholds of the report.
func DefaultOptions() Options { return Options{EvenMargin: 0.1} }

// Page is what became known of one page.
type Page struct {
	// Part is true for an entry of the profile that is part of another page, see
	// access.Lives. It is in no sum; what it adds is in that page's fields.
	Part  bool
	Class Class
	// OneThread is true for a non-shared page that a single thread touched.
	OneThread bool
	// SerialOnly is true for a uniformly shared page that is shared only through
	// serial initialisation.
	SerialOnly bool
	// SerialInit is true where serial code touched the page first.
	SerialInit bool
	// Even is true where parallel code of several nodes uses the page and none
	// clearly most, so that no place of the page is a good one.
	Even bool
	// Best is the node with most DRAM accesses to the page (the home among
	// equals), Most how many these are, DRAM how many there are in all.
	Best       topo.NodeID
	Most, DRAM uint64
	// Accesses is of all levels.
	Accesses uint64
}

// Pages classifies the pages of p; the result has the same length and order.
func Pages(p *profile.Profile, opt Options) []Page { return PagesOf(p, NewUses(p), opt) }

// PagesOf is Pages where the uses of p are at hand.
func PagesOf(p *profile.Profile, uses *Uses, opt Options) []Page {
	life := access.Lives(p)
	t := touches(p, life)
	use, parallel := uses.All.Merged(life), uses.Parallel.Merged(life)
	pages := make([]Page, len(p.Pages))
	for i := range pages {
		if life[i] != i {
			pages[i] = Page{Part: true, Best: topo.Unknown}
			continue
		}
		g := &p.Pages[i]
		x := Page{Accesses: t.accesses[i], SerialInit: t.serialFirst(i)}
		x.Best, x.Most, x.DRAM = use.Best(i, g.Home)
		_, most, all := parallel.Best(i, g.Home)
		x.Even = even(parallel.Page(i), most, all, opt.EvenMargin)
		nodes, parallel := t.nodes(i)
		switch {
		case p.Objects[g.Object].Kind.Private():
			x.Class, x.Even = Private, false
		case nodes > 1:
			x.Class = UniformlyShared
			x.SerialOnly = parallel <= 1
		default:
			x.Class = NonShared
			x.OneThread = !t.many[i]
		}
		pages[i] = x
	}
	return pages
}

// even reports whether counts, whose largest is most and whose sum is all, have
// no node that stands out by more than margin from an equal share of its users.
func even(counts []uint64, most, all uint64, margin float64) bool {
	users := 0
	for _, c := range counts {
		if c > 0 {
			users++
		}
	}
	return users > 1 && float64(most)/float64(all)-1/float64(users) <= margin
}

// touching is who touched each page.
type touching struct {
	p        *profile.Profile
	n        int      // nodes
	any      []bool   // [page*n+node]
	parallel []bool   // the same without serial code
	first    []int    // rank of a thread seen, plus 1; 0 is none
	many     []bool   // more than one rank
	accesses []uint64 // of any level

	serialRegion []bool
}

func touches(p *profile.Profile, life []int) *touching {
	n, pages := len(p.Run.Topology.Nodes), len(p.Pages)
	t := &touching{
		p: p, n: n,
		any: make([]bool, n*pages), parallel: make([]bool, n*pages),
		first: make([]int, pages), many: make([]bool, pages), accesses: make([]uint64, pages),
		serialRegion: access.SerialRegions(p),
	}
	present := make([]bool, len(p.Regions))
	for i := range p.Rows {
		r := &p.Rows[i]
		present[r.Region] = true
		t.accesses[life[r.Page]] += r.Count
		t.touch(life[r.Page], int(r.Thread), int(r.Region))
	}
	// System calls touch pages without an access of the program. Where the
	// profile is restricted to some regions, only their first touches count. Of page
	// faults the first is in no row where others follow.
	faults := p.Run.Source == "faults"
	for i := range p.Pages {
		if g := &p.Pages[i]; g.Thread >= 0 && (g.Region < 0 || faults || present[g.Region]) {
			t.touch(life[i], g.Thread, g.Region)
		}
	}
	return t
}

// touch notes that thread touched page from region (-1 is not known).
func (t *touching) touch(page, thread, region int) {
	x := &t.p.Threads[thread]
	cell := page*t.n + int(x.Node)
	t.any[cell] = true
	if region >= 0 && !(t.serialRegion[region] && x.Rank == 0) {
		t.parallel[cell] = true
	}
	switch t.first[page] {
	case 0:
		t.first[page] = x.Rank + 1
	case x.Rank + 1:
	default:
		t.many[page] = true
	}
}

// nodes counts the nodes whose threads touched page, in all and by parallel code.
func (t *touching) nodes(page int) (any, parallel int) {
	for i := page * t.n; i < (page+1)*t.n; i++ {
		if t.any[i] {
			any++
		}
		if t.parallel[i] {
			parallel++
		}
	}
	return any, parallel
}

// serialFirst reports whether serial code touched page first.
func (t *touching) serialFirst(page int) bool {
	g := &t.p.Pages[page]
	if g.Thread < 0 || t.p.Threads[g.Thread].Rank != 0 {
		return false
	}
	if g.Region < 0 {
		return g.Serial
	}
	return t.serialRegion[g.Region]
}

// Share is a number of pages and the accesses to them.
type Share struct {
	Pages          int
	Accesses, DRAM uint64
}

// Bytes is the bytes of the pages.
func (s Share) Bytes() units.Bytes { return units.Bytes(s.Pages) * units.PageSize }

func (s *Share) add(x *Page) {
	s.Pages++
	s.Accesses += x.Accesses
	s.DRAM += x.DRAM
}

// Sharing is the three classes side by side; together they are all touched
// pages. The other fields are parts of them.
type Sharing struct {
	Private, NonShared, UniformlyShared Share

	OneThread  Share // of NonShared: touched by a single thread
	SerialOnly Share // of UniformlyShared: only through serial initialisation
	Even       Share // of the shared: used evenly, no place is a good one
	SerialInit Share // of the not private: first touched by serial code
}

// All is all touched pages.
func (s *Sharing) All() Share {
	sum := s.Private
	for _, x := range []Share{s.NonShared, s.UniformlyShared} {
		sum.Pages += x.Pages
		sum.Accesses += x.Accesses
		sum.DRAM += x.DRAM
	}
	return sum
}

func (s *Sharing) add(x *Page) {
	switch x.Class {
	case Private:
		s.Private.add(x)
		return
	case NonShared:
		s.NonShared.add(x)
	case UniformlyShared:
		s.UniformlyShared.add(x)
	}
	for _, part := range []struct {
		is    bool
		share *Share
	}{{x.OneThread, &s.OneThread}, {x.SerialOnly, &s.SerialOnly}, {x.Even, &s.Even}, {x.SerialInit, &s.SerialInit}} {
		if part.is {
			part.share.add(x)
		}
	}
}

// Sum adds pages up by key: the result has n entries, key(i) says which one page
// i belongs to, and pages whose key is negative are left out.
func Sum(pages []Page, n int, key func(i int) int) []Sharing {
	sums := make([]Sharing, n)
	for i := range pages {
		if k := key(i); k >= 0 && !pages[i].Part {
			sums[k].add(&pages[i])
		}
	}
	return sums
}

// Uses is how much each node uses each entry of a profile's pages, without regard to
// access.Lives: all accesses, and those of parallel code.
type Uses struct{ All, Parallel access.Use }

// NewUses returns the uses of p.
func NewUses(p *profile.Profile) *Uses {
	serial := access.SerialCode(p)
	return &Uses{access.PageUse(p, nil), access.PageUse(p, func(r *profile.Row) bool { return !serial(r) })}
}

// BestRemote is the DRAM accesses that stay remote if every page that can be
// placed (heap, mapping, global) was on the node that uses it most and all
// others where they are: the least that page placement alone can reach. Pages
// whose home is unknown are left out, as they are from every remote percentage.
// key sums it up as in Sum.
func BestRemote(p *profile.Profile, pages []Page, uses *Uses, n int, key func(i int) int) []uint64 {
	use := uses.All // without the reads before a page had a home
	sums := make([]uint64, n)
	for i := range pages {
		k, g := key(i), &p.Pages[i]
		if k < 0 || g.Home == topo.Unknown {
			continue
		}
		_, most, all := use.Best(i, g.Home)
		if Placeable(p.Objects[g.Object].Kind) {
			sums[k] += all - most
		} else {
			sums[k] += all - use.Page(i)[g.Home]
		}
	}
	return sums
}

// Placeable reports whether pages of objects of this kind can be placed by a plan.
func Placeable(k profile.Kind) bool {
	return k == profile.Heap || k == profile.Mapping || k == profile.Global
}
