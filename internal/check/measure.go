package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Kind is what a limit is about.
type Kind string

// The kinds.
const (
	Program Kind = "program"
	Object  Kind = "object"
	Loop    Kind = "loop" // or a function, for code outside loops
)

// Scope is which figures are taken of a profile.
type Scope struct {
	Only  []string // loops and functions, see access.Only; empty is all
	Named []string // objects and loops that have a limit of their own
	// Metric is of the accesses whose first touches are looked for; empty is DRAM.
	Metric Metric
	// Variable is the variable behind an object, as far as it is known; nil is never.
	Variable func(object int) string
}

// Measurement is the figures of one run; the profile itself is no longer needed.
type Measurement struct {
	Name     string // of the profile's file
	Command  []string
	Topology string
	Only     []string
	Warnings []string

	run   *profile.Profile // its Run alone
	parts []*part          // the program, then its objects and loops, most DRAM accesses first
	named map[string]*part
}

// part is the program, an object or a loop.
type part struct {
	kind    Kind
	name    string // as the report has it
	stable  string // see access.StableNames and access.StableRegion
	traffic access.Traffic
	dynamic uint64  // of the DRAM accesses, those in loops that hand out their work
	places  []Place // where its remote accesses' pages were first touched, the most first
}

func (x *part) flow(m Metric) access.Flow {
	if m == All {
		return x.traffic.All
	}
	return x.traffic.DRAM
}

func (x *part) dynamicShare() float64 {
	if x.dynamic == 0 {
		return 0
	}
	return float64(x.dynamic) / float64(x.traffic.DRAM.Total())
}

// Measure takes the figures of p, a profile from the file called name. Errors that wrap
// topo.ErrOneNode, access.ErrTooFew or access.ErrFirstTouches say that p supports no verdict.
func Measure(name string, p *profile.Profile, scope Scope) (*Measurement, error) {
	if len(p.Run.Topology.Nodes) < 2 {
		return nil, fmt.Errorf("the profile is of %w", topo.ErrOneNode)
	}
	q, err := access.Only(p, scope.Only)
	if err != nil {
		return nil, err
	}
	if err := access.Support(q); err != nil {
		return nil, err
	}
	m := &Measurement{
		Name: name, Command: slices.Clone(p.Run.Command), Topology: p.Run.Topology.String(), Only: slices.Clone(scope.Only),
		Warnings: slices.Clone(p.Warnings), run: &profile.Profile{Run: p.Run}, named: map[string]*part{},
	}
	if !p.Run.Complete {
		m.warn("the recording of %s is not complete: the figures are of the run up to there", name)
	}
	if t := access.Total(q).DRAM; access.Pct(t.Unknown, t.Total()) >= 1 {
		m.warn("%s of the accesses are to pages whose home is not known; they are left out", percent(access.Pct(t.Unknown, t.Total())))
	}
	s := newSummer(q, scope.Metric)
	if scope.Variable != nil {
		s.variable = scope.Variable
	}
	m.parts = s.parts()
	for _, n := range scope.Named {
		if m.named[n], err = s.find(n); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Measurement) warn(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...))
}

// summer adds up a profile by objects and loops.
type summer struct {
	p      *profile.Profile
	metric Metric // of places
	// variable is that behind an object; empty is not known
	variable func(object int) string
	groups   []access.Group
	groupOf  []int // of each object
	stable   []string
	loops    []string // stable names; regions of one line are one: a parallel region and its loop
	loopOf   []int    // of each region
	touches  []Place  // first touches by object, line and whether the code is serial
	touchOf  []int    // of each page
}

func newSummer(p *profile.Profile, metric Metric) *summer {
	s := &summer{p: p, metric: metric, variable: func(int) string { return "" }, loopOf: make([]int, len(p.Regions))}
	s.groups, s.groupOf = access.Groups(p)
	s.stable = access.StableNames(p, s.groups)
	index := make(map[string]int)
	for i := range p.Regions {
		name := access.StableRegion(p, &p.Regions[i])
		if _, ok := index[name]; !ok {
			index[name] = len(s.loops)
			s.loops = append(s.loops, name)
		}
		s.loopOf[i] = index[name]
	}
	s.findTouches()
	return s
}

func (s *summer) group(r *profile.Row) int { return s.groupOf[s.p.Pages[r.Page].Object] }

// parts are the program and what of its objects and loops was accessed.
func (s *summer) parts() []*part {
	parts := s.sum(1, func(*profile.Row) int { return 0 })
	parts[0].kind, parts[0].name, parts[0].stable = Program, "program", "program"
	for i, x := range s.sum(len(s.groups), s.group) {
		if x.kind, x.name, x.stable = Object, s.groups[i].Name, s.stable[i]; x.traffic.All.Total() > 0 {
			parts = append(parts, x)
		}
	}
	loops := s.sum(len(s.loops), func(r *profile.Row) int { return s.loopOf[r.Region] })
	for i := range s.p.Regions {
		if x := loops[s.loopOf[i]]; x.name == "" && x.traffic.All.Total() > 0 {
			x.kind, x.stable = Loop, s.loops[s.loopOf[i]]
			x.name = cmp.Or(s.p.Regions[i].Name, x.stable)
			parts = append(parts, x)
		}
	}
	slices.SortStableFunc(parts[1:], func(a, b *part) int { return cmp.Compare(b.traffic.DRAM.Total(), a.traffic.DRAM.Total()) })
	return parts
}

// sum adds up the rows by key, as access.By does.
func (s *summer) sum(n int, key func(*profile.Row) int) []*part {
	places := s.places(n, key)
	parts := make([]*part, n)
	for i, t := range access.By(s.p, n, key) {
		parts[i] = &part{traffic: t, places: places[i]}
	}
	dealt := access.By(s.p, n, func(r *profile.Row) int {
		if s.p.Regions[r.Region].Dynamic {
			return key(r)
		}
		return -1
	})
	for i, t := range dealt {
		parts[i].dynamic = t.DRAM.Total()
	}
	return parts
}

// find is the object or the loops that a user calls name, perhaps with its kind before
// it: "object:u".
func (s *summer) find(name string) (*part, error) {
	kind, plain, ok := strings.Cut(name, ":")
	if !ok || kind != string(Object) && kind != string(Loop) {
		kind, plain = "", name
	}
	var objects []int
	var loops []bool
	if kind != string(Loop) {
		objects = s.findObjects(plain)
	}
	if kind != string(Object) {
		loops = s.findLoops(plain)
	}
	switch {
	case loops != nil && len(objects) > 0:
		return nil, fmt.Errorf("%q is an object and a loop: write %s:%s or %s:%s", name, Object, plain, Loop, plain)
	case len(objects) > 1:
		var names []string
		for _, i := range objects {
			names = append(names, s.groups[i].Name)
		}
		return nil, fmt.Errorf("%q is not one object but %s", name, strings.Join(names, ", "))
	case len(objects) == 1:
		x := s.sum(1, func(r *profile.Row) int { return keep(s.group(r) == objects[0]) })[0]
		x.kind, x.name, x.stable = Object, s.groups[objects[0]].Name, s.stable[objects[0]]
		return x, nil
	case loops != nil:
		x := s.sum(1, func(r *profile.Row) int { return keep(loops[r.Region]) })[0]
		x.kind, x.name, x.stable = Loop, plain, plain
		return x, nil
	}
	return nil, fmt.Errorf("no object and no loop is called %q; the profile has the objects %s; the loops and functions %s", name, s.atHand(Object), s.atHand(Loop))
}

func keep(ok bool) int {
	if ok {
		return 0
	}
	return -1
}

// findObjects is the groups called name in the report or in a baseline, failing that
// those that access.Called has it mean.
func (s *summer) findObjects(name string) []int {
	var exact, loose []int
	if name == "" {
		return nil
	}
	for i := range s.groups {
		g := &s.groups[i]
		switch {
		case name == g.Name || name == s.stable[i]:
			exact = append(exact, i)
		case access.Called(s.p, g, s.variable(g.Objects[0]), name):
			loose = append(loose, i)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return loose
}

// findLoops is the regions called name in a baseline or as access.Only has it; nil is none.
func (s *summer) findLoops(name string) []bool {
	if i := slices.Index(s.loops, name); i >= 0 {
		in := make([]bool, len(s.p.Regions))
		for r, loop := range s.loopOf {
			in[r] = loop == i
		}
		return in
	}
	in, err := access.Regions(s.p, []string{name})
	if err != nil {
		return nil
	}
	return in
}

// atHand lists the names of a kind, those with most accesses first.
func (s *summer) atHand(kind Kind) string {
	const most = 12
	var names []string
	for _, x := range s.parts() {
		if x.kind == kind {
			names = append(names, ident.Printable(x.name))
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
