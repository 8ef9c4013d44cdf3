// Package advice says what to change in the source of a program where no plan
// helps: which loops, to what, what must be respected, and what is then remote.
//
// # Input
//
// A profile, the planner's result for it, the arrays behind objects, and the text of
// source files, as far as they are there.
//
// # Output
//
// An Item for each change that would save Options.MinSave points of the DRAM
// accesses beyond the plan, with the text of the change for the program's own file,
// lines, variables and bounds.
//
// # Method
//
// What the plan leaves remote is looked at from seven sides. Loops that the binary
// does not let be permuted are planned again as if it did. Arrays that loops divide
// along different axes are made block-exclusive, and the loops go through them in
// phases (CGO'12 §4.1, §5, fig. 13); those that are divided along an axis whose parts
// are no whole pages are padded. Where a loop uses fewer rows each time, its iterations
// go to who holds the rows. Objects that are only read after the program's
// start, by all nodes alike, get a copy a node. Objects that share a page are
// separated. What the main thread fills, and no plan can place, is to be filled by
// the threads that use it. Transpositions go line by line.
//
// A prediction re-evaluates the profile's table: an access in a loop that follows a
// distribution is made by the node that owns its byte, so it is local but where the
// page belongs to another (whole pages, after the API's padding), and where the loop
// reached beyond its part before, across a border. Sweeps that the phases cut reach
// across those cuts, too: by as many indices as the subscripts in the source say, by
// one on either side where they do not say.
//
// # Limits
//
// Dependences are known only as far as subscripts and the direction of loops show
// them (loops whose subscripts show one between threads keep their schedules); what the reader must check is said with each change. Headers of loops are
// read by a recogniser of the plain forms; where it fails the names are made up, and
// the item says so; a bound that is not known is printed as what no compiler takes. That phases cost a barrier each, and that data which another node
// wrote last comes from its cache, is not counted.
package advice

import (
	"cmp"
	"maps"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/classify"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
	"numaopt/internal/shape"
	"numaopt/internal/units"
)

// Kind is the kind of a change.
type Kind string

// The kinds.
const (
	Phases     Kind = "block-exclusive" // loops go through blocks in phases, CGO'12 fig. 13(c)
	Pad        Kind = "pad"             // rows and the nodes' parts of them become whole pages
	Owner      Kind = "owner"           // parts as they are, each by the threads of the node that holds it
	Schedule   Kind = "schedule"        // another schedule, CGO'12 fig. 14(c)
	Replicate  Kind = "replicate"       // a copy a node
	Separate   Kind = "separate"        // objects that share pages
	Initialise Kind = "initialise"      // in parallel, as it is used
	Blockwise  Kind = "blockwise"       // a transposition by cache lines
)

// Options are what Find needs beside the plan.
type Options struct {
	Planner planner.Options          // that the plan was made with
	Shapes  map[int]shape.Shape      // by object, as shape.Find finds them
	Read    func(file string) []byte // a source file, nil if it is not there
	// Code is the lines that the code of a region's outlined function comes from, nil
	// where that is not known; the function may be nil, too.
	Code    func(region int) map[int]bool
	MinSave float64 // points of the accesses for which an item is given
}

// DefaultMinSave is a point: two runs of a program may differ by one.
const DefaultMinSave = 1

// Advice is what changes of the source would save.
type Advice struct {
	// Automatic is the remote share of the accesses in per cent that the plan leaves;
	// Source is that with all of Items done, Automatic where there are none; of items
	// that change how a loop uses the same data, with the one that saves most.
	Automatic float64 `json:"remote_dram_pct_automatic"`
	Source    float64 `json:"remote_dram_pct_source_change"`
	// Assumed is true where that holds for an item that Source counts.
	Assumed bool   `json:"assumed,omitempty"`
	Items   []Item `json:"advice"`
	// Notes is what no change of the source that is known here helps, and why.
	Notes []string `json:"notes"`
}

// Item is one change.
type Item struct {
	Kind    Kind     `json:"kind"`
	Objects []string `json:"objects"`
	Loops   []string `json:"loops"` // "sweep.c:88 (sweep_x): y-wise"
	Why     string   `json:"why"`
	// Remote is the remote share of all accesses in per cent, with the plan and this
	// change; Saves the points by which that is less than with the plan. AtMost is
	// true where the profile gives only a bound of what can be saved.
	Remote float64 `json:"remote_dram_pct"`
	Saves  float64 `json:"saves_points"`
	AtMost bool    `json:"at_most,omitempty"`
	// Assumed is true where Remote holds only if loops whose source was not understood
	// can be changed as the others are.
	Assumed bool `json:"assumed,omitempty"`
	// Respect is the dependences, Notes what was not understood.
	Respect []string `json:"respect"`
	Notes   []string `json:"notes"`
	Changes []Change `json:"changes"`

	saved, extra float64 // accesses: that become local; remote ones that come to be beside, or, negative, that are made no more
	// uses is the pairs of a region and a group of objects whose accesses are among
	// those; none where what follows was measured with the item done.
	uses map[[2]int]bool
}

// use notes that accesses of a region to a group are among those of x.
func (x *Item) use(region, group int) {
	if x.uses == nil {
		x.uses = make(map[[2]int]bool)
	}
	x.uses[[2]int{region, group}] = true
}

// Change is a text for one place of the program.
type Change struct {
	Where string `json:"where"` // "instead of sweep.c:86-90 (sweep_x)"
	Text  string `json:"text"`
	// File and From to To are the lines that Text replaces, as they were when the
	// source was read; with To 0 it follows line From. Empty where only Where says it.
	File string `json:"file,omitempty"`
	From int    `json:"from,omitempty"`
	To   int    `json:"to,omitempty"`
}

// finder is what the parts of Find share.
type finder struct {
	p      *profile.Profile
	plan   *planner.Outcome // what items are measured against
	opt    Options
	result *planner.Result
	n      int     // nodes
	known  float64 // accesses that count
	remote float64 // and are remote
	groups []access.Group
	of     []int // by object
	want   []classify.Patterns
	// far is by group the remote accesses; taken the groups that an item is about.
	far   []float64
	taken []bool
	// follows tells which groups are in an item's distribution, so that their loops change.
	follows map[int]bool
	// stores tells whether a region writes to a group.
	stores map[[2]int]bool
	files  map[string]*file
	// unmerged tells which regions of several loops an item takes apart.
	unmerged map[int]bool
}

// Find returns the changes that save most, most first. The error is the planner's.
func Find(p *profile.Profile, r *planner.Result, opt Options) (*Advice, error) {
	a := &Advice{Automatic: r.After.RemotePct(), Source: r.After.RemotePct(), Items: []Item{}, Notes: []string{}}
	if a.Automatic < opt.MinSave {
		return a, nil
	}
	f := &finder{p: p, plan: r.Outcome, opt: opt, result: r, n: len(p.Run.Topology.Nodes), files: make(map[string]*file), unmerged: make(map[int]bool), follows: make(map[int]bool)}
	f.known, f.remote = float64(r.After.Known), float64(r.After.Remote)
	f.groups, f.of = access.Groups(p)
	items, err := f.schedules()
	if err != nil {
		return nil, err
	}
	a.Notes = append(a.Notes, f.depending()...)
	f.taken = make([]bool, len(f.groups))
	f.count()
	f.want = classify.FindPatterns(f.heaviest(), f.groups, f.of, opt.Shapes)
	for _, find := range []func() []Item{f.phases, f.owners, f.replicate, f.initialise, f.separate} {
		items = append(items, find()...)
	}
	across, notes := f.blockwise()
	items = append(items, across...)
	a.Notes = append(a.Notes, slices.Concat(notes, f.mixed(), f.several())...)
	a.add(items, r.After, opt.MinSave)
	return a, nil
}

// add takes the items that save least points or more, those that save most first, and
// says what all of them leave of now. Two items may count the same accesses: the better
// one has them.
func (a *Advice) add(items []Item, now planner.Split, least float64) {
	left := func(saved, extra float64) float64 {
		return units.Percent(max(0, float64(now.Remote)-saved+extra), float64(now.Known)+extra)
	}
	for _, x := range items {
		x.Remote = left(x.saved, x.extra)
		if x.Saves = a.Automatic - x.Remote; x.Saves >= least {
			a.Items = append(a.Items, x)
		}
	}
	slices.SortStableFunc(a.Items, func(x, y Item) int { return cmp.Compare(y.Saves, x.Saves) })
	counted, saved, extra := make(map[[2]int]bool), 0.0, 0.0
	for i := range a.Items {
		x := &a.Items[i]
		if x.AtMost || overlap(x.uses, counted) {
			continue
		}
		maps.Copy(counted, x.uses)
		a.Assumed = a.Assumed || x.Assumed
		saved, extra = saved+x.saved, extra+x.extra
	}
	a.Source = left(saved, extra)
}

func overlap(a, b map[[2]int]bool) bool {
	for k := range a {
		if b[k] {
			return true
		}
	}
	return false
}

// Better reports whether changes of the source save what is worth to be said beside
// the plan.
func (a *Advice) Better() bool { return len(a.Items) > 0 && a.Source < a.Automatic }

// count fills in far and stores.
func (f *finder) count() {
	f.far, f.stores = make([]float64, len(f.groups)), make(map[[2]int]bool)
	rows := f.plan.Profile.Rows
	for i := range rows {
		f.far[f.of[f.p.Pages[rows[i].Page].Object]] += float64(f.plan.Remote(&rows[i]))
	}
	for i := range f.p.Rows {
		if r := &f.p.Rows[i]; r.Op == profile.Store {
			f.stores[[2]int{int(r.Region), f.of[f.p.Pages[r.Page].Object]}] = true
		}
	}
}

// maxPatterns bounds the patterns that are looked for, each of one loop's use of one
// object: most take a millisecond, those that are none in large objects 40.
const maxPatterns = 200

// heaviest is the profile with the rows that count, those of the maxPatterns pairs of
// a loop and a group of objects that make most accesses.
func (f *finder) heaviest() *profile.Profile {
	type pair struct{ region, group int }
	weight := make(map[pair]uint64)
	of := func(r *profile.Row) pair { return pair{int(r.Region), f.of[f.p.Pages[r.Page].Object]} }
	f.each(func(r *profile.Row) { weight[of(r)] += r.Count })
	var order []pair
	for k := range weight {
		order = append(order, k)
	}
	slices.SortFunc(order, func(a, b pair) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a.group, b.group), cmp.Compare(a.region, b.region))
	})
	for _, k := range order[min(len(order), maxPatterns):] {
		delete(weight, k)
	}
	q := *f.p
	q.Rows = nil
	for i := range f.p.Rows {
		r := &f.p.Rows[i]
		if _, in := weight[of(r)]; in && r.Level == profile.DRAM {
			q.Rows = append(q.Rows, *r)
		}
	}
	return &q
}

// each calls do for the rows that count.
func (f *finder) each(do func(*profile.Row)) {
	rows := f.plan.Profile.Rows
	for i := range rows {
		if f.plan.Counts(&rows[i]) {
			do(&rows[i])
		}
	}
}

// matters reports whether this many accesses are worth an item.
func (f *finder) matters(accesses float64) bool {
	return units.Percent(accesses, f.known) >= f.opt.MinSave
}

// uses reports whether a region makes a share of the accesses to group g that has a
// pattern.
func (f *finder) uses(region, g int) bool {
	return slices.ContainsFunc(f.want[g].Loops, func(l classify.LoopPattern) bool { return l.Region == region })
}

// source is the loops of a source file, nil if it is not there or not understood.
func (f *finder) source(name string) *file {
	if name == "" {
		return nil
	}
	x, known := f.files[name]
	if !known {
		if text := f.opt.Read(name); text != nil {
			x = parse(name, string(text))
		}
		f.files[name] = x
	}
	return x
}

// region is how a reader finds region i.
func (f *finder) region(i int) string {
	if name := f.p.Regions[i].Name; name != "" {
		return name
	}
	return "an unnamed loop"
}
