// Package diff says what changed between two runs of a program: which objects and
// loops are served from other nodes than before, and why.
//
// # Input
//
// Two profiles, of two builds or runs of one program.
//
// # Output
//
// A Result: the figures of both, objects and loops beside each other, and what got worse
// with the reasons that the profiles show.
//
// # Method
//
// Objects and loops are matched by names that survive a rebuild: what has the same code
// in the same build is the same; else globals go by symbol and file, allocations by the
// functions of the program on their call stack, loops by their function. Where a
// function has several, they are aligned in the order of the source by what speaks for
// a pair: the line counted from the function's declaration, the size, and which loops use
// the object. A match that another one comes close to is in doubt, and said to be.
//
// A contribution is an object's remote DRAM accesses in per cent of all DRAM accesses
// whose page has a known home, so that contributions add up to the remote percentage. A
// change is significant where its 95 % interval (stat.Difference; of full traces the
// change itself) lies wholly beyond what equal runs differ by: Options.Repeat, or, of full
// traces, the part of the DRAM accesses by which threads that did the same work differ.
//
// # Limits
//
// A function that was renamed is another one, and so are its allocations and loops. The
// chance by which work that is handed out while the program runs is made elsewhere in
// another run is not in the interval. Remote percentages of machines with different
// numbers of nodes do not compare, nor do page faults and DRAM accesses: both are
// refused.
package diff

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/latency"
	"numaopt/internal/profile"
	"numaopt/internal/stat"
	"numaopt/internal/topo"
)

// Version is the version of the JSON; it is raised when a field changes its meaning or
// goes, not when one is added.
const Version = 1

// Options are the thresholds of Run.
type Options struct {
	// Repeat is by how many points equal runs differ at least: of full traces by less than
	// half a point in the programs of testdata, where their data is larger than the LLC.
	Repeat float64
	// Fail is by how many points the remote percentage may rise; Result.Failed is that it
	// rose by more, significantly. Negative is no limit.
	Fail float64
	// Moved is how much of something, in [0,1], must be elsewhere to be named as a
	// reason: a tenth of the pages explains most of what a tenth of the accesses do.
	Moved float64
}

// DefaultOptions have no limit.
func DefaultOptions() Options { return Options{Repeat: 1, Fail: -1, Moved: 0.1} }

// ErrCompare says that two profiles are not comparable.
var ErrCompare = errors.New("cannot be compared")

// Figure is a number before and after; null in JSON is that there is none.
type Figure struct {
	Before Number `json:"before"`
	After  Number `json:"after"`
}

// Change is After-Before.
func (f Figure) Change() float64 { return float64(f.After - f.Before) }

// Word is how a contribution changed.
type Word string

// The words. Same is not significantly; New and Gone are significant, too.
const (
	Same   Word = "same"
	Worse  Word = "worse"
	Better Word = "better"
)

// Share is a remote percentage before and after.
type Share struct {
	Figure
	// Points is the change, Low and High its 95 % interval.
	Points Number `json:"change_points"`
	Low    Number `json:"change_low"`
	High   Number `json:"change_high"`
	Word   Word   `json:"verdict"`
}

// Entry is an object or a loop.
type Entry struct {
	Name   string `json:"name"` // as the profile after has it, or else the one before
	Before string `json:"name_before,omitempty"`
	Kind   string `json:"kind"`
	// New and Gone are where the other profile has no match.
	New  bool `json:"new,omitempty"`
	Gone bool `json:"gone,omitempty"`
	// Doubtful is a match that another one comes close to.
	Doubtful bool `json:"doubtful,omitempty"`
	// Contribution is in points of all DRAM accesses, Remote in per cent of its own.
	Contribution Share  `json:"contribution"`
	Remote       Figure `json:"remote_dram_pct"`
	DRAM         Figure `json:"dram_pct"` // of all DRAM accesses
	// The rest is of objects alone.
	Bytes   *Figure `json:"bytes,omitempty"`
	Uniform *Figure `json:"uniformly_shared_pct,omitempty"`
	Without *Figure `json:"uniformly_shared_without_serial_init_pct,omitempty"`
	Cost    *Figure `json:"latency_cost_pct,omitempty"` // of the cycles of all loads

	before, after int // index of group or region, -1 is none
}

// Worsened is something that got worse, and why.
type Worsened struct {
	Kind   string   `json:"kind"` // "object" or "loop"
	Name   string   `json:"name"`
	Points Number   `json:"change_points"`
	Why    []string `json:"why"`
}

// Result is what changed.
type Result struct {
	Version  int      `json:"numaopt_diff"`
	Verdict  string   `json:"verdict"`
	Failed   bool     `json:"failed"`
	Warnings []string `json:"warnings"`

	// Repeat is by how many points such runs differ when nothing changed.
	Repeat       Number `json:"repeat_points"`
	RemoteDRAM   Share  `json:"remote_dram_pct"`
	RemoteAccess Figure `json:"remote_access_pct"`
	DRAMAccesses Figure `json:"dram_accesses"`
	Imbalance    Figure `json:"imbalance"`
	Private      Figure `json:"private_pct"`
	NonShared    Figure `json:"non_shared_pct"`
	Uniform      Figure `json:"uniformly_shared_pct"`
	Without      Figure `json:"uniformly_shared_without_serial_init_pct"`
	// LoadLatency is the mean in cycles, LatencyCost what remote loads cost beyond local
	// ones in per cent of the cycles of all loads; nil where the source has none.
	LoadLatency *Figure `json:"load_latency_cycles,omitempty"`
	LatencyCost *Figure `json:"latency_cost_pct,omitempty"`

	Objects  []Entry    `json:"objects"` // those that changed most first
	Loops    []Entry    `json:"loops"`
	Worsened []Worsened `json:"worsened"`
}

// Run compares two profiles. An error wraps ErrCompare or topo.ErrOneNode.
func Run(before, after *profile.Profile, opt Options) (*Result, error) {
	if err := refusal(before, after); err != nil {
		return nil, err
	}
	d := &differ{opt: opt, before: newSide(before), after: newSide(after)}
	if d.lacking = access.Support(before); d.lacking == nil {
		d.lacking = access.Support(after)
	}
	d.matchLoops()
	d.matchObjects()
	d.repeat = max(opt.Repeat, 100*d.chance())
	r := &Result{Version: Version, Objects: d.objects(), Loops: d.loops(), Worsened: []Worsened{}}
	r.Repeat = Number(d.repeat)
	d.totals(r)
	r.Warnings = d.warnings(r)
	r.Worsened = append(r.Worsened, d.worsened(r)...)
	r.Failed = opt.Fail >= 0 && d.lacking == nil && float64(r.RemoteDRAM.Low) > max(opt.Fail, d.repeat)
	r.Verdict = d.verdict(r)
	return r, nil
}

func refusal(before, after *profile.Profile) error {
	a, b := &before.Run, &after.Run
	switch n, m := len(a.Topology.Nodes), len(b.Topology.Nodes); {
	case n < 2 && m < 2:
		return fmt.Errorf("both profiles are of %w", topo.ErrOneNode)
	case n != m:
		return fmt.Errorf("profiles of %d and of %d nodes %w: a random page is remote more often the more nodes there are; profile both with the same --topology", n, m, ErrCompare)
	case (a.Source == "faults") != (b.Source == "faults"):
		return fmt.Errorf("page faults and DRAM accesses %w: profile both with the same --source", ErrCompare)
	}
	return nil
}

// differ is a comparison under way.
type differ struct {
	opt           Options
	before, after *side
	loopPairs     []pair  // of regions
	objectPairs   []pair  // of groups
	partner       []int   // of a region after: the one before, -1 is none
	lacking       error   // why a profile supports no verdict; nil where both do
	repeat        float64 // points by which such runs differ when nothing changed
}

func (d *differ) matchLoops() {
	list := func(s *side) (items []item) {
		for i := range s.p.Regions {
			items = append(items, loopItem(s.p, i))
		}
		return items
	}
	d.loopPairs = match(list(d.before), list(d.after), func(i, j int) float64 {
		x, y := &d.before.p.Regions[i], &d.after.p.Regions[j]
		return ratio(float64(d.before.loops[i].All.Total()), float64(d.after.loops[j].All.Total())) +
			ratio(float64(max(x.Entries, x.Invocations)), float64(max(y.Entries, y.Invocations)))
	})
	d.partner = partners(d.loopPairs, len(d.after.p.Regions))
}

func partners(pairs []pair, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = -1
	}
	for _, p := range pairs {
		list[p.after] = p.before
	}
	return list
}

// chance is the part, in [0,1], of the DRAM accesses of full traces that the cache made
// or spared in one run and not in the other: threads that did the same work missed
// another number of times. It is of note where the data of a loop is about as large as
// the LLC. Where pages are has no influence on it.
func (d *differ) chance() float64 {
	if d.before.p.Run.Period > 1 || d.after.p.Run.Period > 1 {
		return 0 // in the interval of the samples
	}
	var other, all float64
	for _, p := range d.loopPairs {
		for rank, y := range d.after.work[p.after] {
			x, ok := d.before.work[p.before][rank]
			if !ok || ratio(float64(x.All.Total()), float64(y.All.Total())) < sameWork && !d.after.p.Regions[p.after].Dynamic {
				continue
			}
			other += math.Abs(float64(x.DRAM.Total()) - float64(y.DRAM.Total()))
			all += float64(max(x.DRAM.Total(), y.DRAM.Total()))
		}
	}
	if all == 0 {
		return 0
	}
	return other / all
}

// sameWork is the ratio of two numbers of accesses from which on they are the same work:
// what a runtime's waiting adds is less.
const sameWork = 0.99

// ratio is how alike two sizes are, in [0,1].
func ratio(a, b float64) float64 {
	if a == b {
		return 1
	}
	return min(a, b) / max(a, b)
}

func (d *differ) matchObjects() {
	list := func(s *side) (items []item) {
		for i := range s.groups {
			items = append(items, objectItem(s.p, &s.groups[i]))
		}
		return items
	}
	d.objectPairs = match(list(d.before), list(d.after), func(i, j int) float64 {
		return ratio(float64(d.before.groups[i].Bytes), float64(d.after.groups[j].Bytes)) +
			ratio(float64(d.before.objects[i].All.Total()), float64(d.after.objects[j].All.Total())) + 2*d.usedAlike(i, j)
	})
}

// usedAlike is the part, in [0,1], of the accesses to group i before and j after that
// the same loops make, by the same operation.
func (d *differ) usedAlike(i, j int) float64 {
	sum := 0.0
	for _, v := range d.after.uses[j] {
		for _, u := range d.before.uses[i] {
			if u.region == d.partner[v.region] {
				sum += min(u.loads, v.loads) + min(u.stores, v.stores)
			}
		}
	}
	return sum
}

func (d *differ) totals(r *Result) {
	a, b := d.before, d.after
	figure := func(f func(s *side) float64) Figure { return Figure{Number(f(a)), Number(f(b))} }
	r.RemoteDRAM = d.share(a.total.DRAM, b.total.DRAM)
	r.RemoteAccess = figure(func(s *side) float64 { return s.total.All.RemotePct() })
	r.DRAMAccesses = figure(func(s *side) float64 { return float64(s.total.DRAM.Total()) })
	r.Imbalance = figure(func(s *side) float64 { return access.NodeMatrix(s.p, true).Imbalance() })
	pages := func(n func(s *side) int) Figure {
		return figure(func(s *side) float64 { return access.Pct(uint64(n(s)), uint64(s.shared.All().Pages)) })
	}
	r.Private = pages(func(s *side) int { return s.shared.Private.Pages })
	r.NonShared = pages(func(s *side) int { return s.shared.NonShared.Pages })
	r.Uniform = pages(func(s *side) int { return s.shared.UniformlyShared.Pages })
	r.Without = pages(func(s *side) int { return s.shared.UniformlyShared.Pages - s.shared.SerialOnly.Pages })
	if a.cycles > 0 && b.cycles > 0 {
		mean := figure(func(s *side) float64 { h := latency.Total(s.p); return h.Mean() })
		cost := figure(func(s *side) float64 { return s.cost(-1) })
		r.LoadLatency, r.LatencyCost = &mean, &cost
	}
}

// share compares remote accesses, in points of all DRAM accesses.
func (d *differ) share(before, after access.Flow) Share {
	a, b := d.before, d.after
	x := Share{Figure: Figure{Number(a.points(before)), Number(b.points(after))}, Word: Same}
	lo, hi := x.Change(), x.Change()
	if pa, pb := access.EffectivePeriod(a.p), access.EffectivePeriod(b.p); pa > 1 || pb > 1 {
		l, h := stat.Difference(float64(before.Remote)/pa, float64(a.total.DRAM.Known())/pa, float64(after.Remote)/pb, float64(b.total.DRAM.Known())/pb)
		lo, hi = 100*l, 100*h
	}
	x.Points, x.Low, x.High = Number(x.Change()), Number(lo), Number(hi)
	switch {
	case d.lacking != nil:
	case lo > d.repeat:
		x.Word = Worse
	case hi < -d.repeat:
		x.Word = Better
	}
	return x
}

// objects are the groups that were accessed, those that changed most first.
func (d *differ) objects() []Entry {
	list := entries(d.objectPairs, len(d.before.groups), len(d.after.groups))
	for i := range list {
		e := &list[i]
		d.flows(e, func(s *side, at int) (string, string, access.Flow) {
			return s.groups[at].Name, string(s.groups[at].Kind), s.objects[at].DRAM
		})
		of := func(f func(s *side, g int) float64) *Figure { return d.figure(e, f) }
		e.Bytes = of(func(s *side, g int) float64 { return float64(s.groups[g].Bytes) })
		e.Uniform = of(func(s *side, g int) float64 { shared, _ := uniform(&s.sharing[g]); return shared })
		e.Without = of(func(s *side, g int) float64 { _, without := uniform(&s.sharing[g]); return without })
		if d.before.costs != nil && d.after.costs != nil {
			e.Cost = of(func(s *side, g int) float64 { return s.cost(g) })
		}
	}
	return ordered(list)
}

func (d *differ) loops() []Entry {
	list := entries(d.loopPairs, len(d.before.p.Regions), len(d.after.p.Regions))
	for i := range list {
		d.flows(&list[i], func(s *side, at int) (string, string, access.Flow) {
			return access.RegionName(s.p, at), string(s.p.Regions[at].Kind), s.loops[at].DRAM
		})
	}
	d.regrouped(list)
	return ordered(list)
}

// regrouped takes the word from loops that have no certain match, where all of their
// function together did not change: compilers merge and split loops.
func (d *differ) regrouped(list []Entry) {
	before, after := d.before.byFunction(), d.after.byFunction()
	for i := range list {
		e := &list[i]
		if !e.New && !e.Gone && !e.Doubtful {
			continue
		}
		s, at := d.after, e.after
		if e.Gone {
			s, at = d.before, e.before
		}
		if f := s.p.Regions[at].Function; f != "" && d.share(before[f], after[f]).Word == Same {
			e.Contribution.Word = Same
		}
	}
}

// entries are the pairs and what has none.
func entries(pairs []pair, before, after int) []Entry {
	list := []Entry{}
	was, is := make([]bool, before), make([]bool, after)
	for _, p := range pairs {
		was[p.before], is[p.after] = true, true
		list = append(list, Entry{before: p.before, after: p.after, Doubtful: p.doubt})
	}
	for i, paired := range was {
		if !paired {
			list = append(list, Entry{before: i, after: -1, Gone: true})
		}
	}
	for i, paired := range is {
		if !paired {
			list = append(list, Entry{before: -1, after: i, New: true})
		}
	}
	return list
}

// flows fills what objects and loops have in common; of is the name, the kind and the
// DRAM accesses of one.
func (d *differ) flows(e *Entry, of func(s *side, at int) (string, string, access.Flow)) {
	var flow [2]access.Flow
	var name [2]string
	for i, x := range []struct {
		s  *side
		at int
	}{{d.before, e.before}, {d.after, e.after}} {
		if x.at >= 0 {
			name[i], e.Kind, flow[i] = of(x.s, x.at)
		}
	}
	e.Name = cmp.Or(name[1], name[0])
	if name[0] != e.Name {
		e.Before = name[0]
	}
	e.Contribution = d.share(flow[0], flow[1])
	e.Remote = Figure{Number(flow[0].RemotePct()), Number(flow[1].RemotePct())}
	e.DRAM = Figure{Number(d.before.dramPct(flow[0])), Number(d.after.dramPct(flow[1]))}
}

// figure is f of both sides of e, not a number where a side has none.
func (d *differ) figure(e *Entry, f func(s *side, at int) float64) *Figure {
	x := Figure{Number(math.NaN()), Number(math.NaN())}
	if e.before >= 0 {
		x.Before = Number(f(d.before, e.before))
	}
	if e.after >= 0 {
		x.After = Number(f(d.after, e.after))
	}
	return &x
}

// ordered leaves out what DRAM never served, and has what changed most first.
func ordered(list []Entry) []Entry {
	list = slices.DeleteFunc(list, func(e Entry) bool { return !(e.DRAM.Before > 0) && !(e.DRAM.After > 0) })
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(math.Abs(float64(b.Contribution.Points)), math.Abs(float64(a.Contribution.Points))),
			cmp.Compare(b.DRAM.After, a.DRAM.After), cmp.Compare(b.DRAM.Before, a.DRAM.Before), cmp.Compare(a.Name, b.Name))
	})
	return list
}
