package planner

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// picture repeats page descriptions: "8 x 0!1 9 0" is eight such pages.
func picture(head string, pages ...string) string {
	var list []string
	for _, p := range pages {
		n, rest := 1, p
		if a, b, ok := strings.Cut(p, " x "); ok {
			fmt.Sscan(a, &n)
			rest = b
		}
		for range n {
			list = append(list, rest)
		}
	}
	return head + ": " + strings.Join(list, " | ")
}

func build(t *testing.T, p *profile.Profile, opt Options) *Result {
	t.Helper()
	r, err := Build(p, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// placement is the entries of a plan, one line each.
func placement(p *plan.Plan) string {
	var lines []string
	for _, e := range p.Objects {
		s := e.Name + " " + string(e.Place.Policy)
		switch e.Place.Policy {
		case plan.Bind:
			s += fmt.Sprintf(" %d", e.Place.Node)
		case plan.BlockCyclic:
			s += " " + e.Place.Block.Exact()
		case plan.Interleave:
			s += fmt.Sprint(" ", e.Place.Nodes)
		case plan.Pages:
			s += " " + e.Place.Map.String()
		}
		if in := e.Instance; in != nil {
			s += fmt.Sprintf(" [%d:%d+%d]", in.Rank, in.First, in.Count)
		}
		lines = append(lines, s)
	}
	return strings.Join(lines, "; ")
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		name, picture string
		want          string
		before, after float64
	}{
		{"local already", picture("u heap", "8 x 0 900 0", "8 x 1 0 900"), "", 0, 0},
		{"all on the wrong node", picture("u heap", "16 x 0!1 0 900"), "u bind 1", 99.89, 0.11},
		{"serial initialisation, then in parts", picture("u heap", "8 x 0!1 900 0", "8 x 0!1 0 900"), "u x-wise", 49.94, 0.06},
		{"a global", picture("u global", "8 x 0!1 900 0", "8 x 0!1 0 900"), "u x-wise", 49.94, 0.06},
		{"alternating blocks", picture("u heap", "2 x 0 900 0", "2 x 0 0 900", "2 x 0 900 0", "2 x 0 0 900", "2 x 0 900 0", "2 x 0 0 900"), "u block-cyclic 8KiB", 50, 0},
		{"irregular", picture("u heap", "3 x 0 900 0", "2 x 0 0 900", "1 x 0 900 0", "5 x 0 0 900"), "u pages 0*3 1*2 0*1 1*5", 63.64, 0},
		{"untouched pages go with those before", picture("u heap", "3 x 0 900 0", "2 x ", "1 x 0 0 900", "1 x ", "5 x 0 0 900", "1 x 0 900 0"), "u pages 0*5 1*7 0*1", 60, 0},
		{"even, all in one place", picture("u heap", "16 x 0!0 900 900"), "u interleave []", 50, 50},
		{"even, spread by first touch", picture("u heap", "16 x 0 900 900", "16 x 1 900 900"), "", 50, 50},
		{"nearly even: moving gains too little", picture("u heap", "16 x 0 500 490", "16 x 1 490 500"), "", 49.49, 49.49},
		{"stack", picture("u stack", "8 x 0!1 0 900"), "", 99.89, 99.89},
		{"image", picture("u image", "8 x 0!1 0 900"), "", 99.89, 99.89},
		{"small", picture("u small", "8 x 0!1 0 900"), "", 99.89, 99.89},
		{"nobody knows what", picture("u unknown", "8 x 0!1 0 900"), "", 99.89, 99.89},
		{"never written", picture("u mapping", "8 x ? 0 900"), "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := DefaultOptions()
			opt.MinDRAM = 0
			r := build(t, profiletest.Draw(2, 1, c.picture), opt)
			if got := placement(r.Plan); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := r.Plan.Predict; got != (plan.Predict{RemoteBefore: c.before, RemoteAfter: c.after}) {
				t.Errorf("predicted %+v, want %v -> %v", got, c.before, c.after)
			}
			if r.After.Remote < r.Best.Remote || r.After.Remote > r.Before.Remote {
				t.Errorf("remote %d, planned %d, best %d", r.Before.Remote, r.After.Remote, r.Best.Remote)
			}
		})
	}
}

// TestRelative: what goes round the nodes once is put in words that hold at any
// size and for any number of nodes, even where they are off by a page.
func TestRelative(t *testing.T) {
	parts := func(first, second, third, fourth string) *profile.Profile {
		return profiletest.Draw(4, 1, picture("u heap", first+" x 0!1 900 0 0 0", second+" x 0!1 0 900 0 0", third+" x 0!1 0 0 900 0", fourth+" x 0!1 0 0 0 900", "1 x "))
	}
	for _, c := range []struct {
		name string
		p    *profile.Profile
		want string
	}{
		{"parts that end within a page", parts("78", "78", "78", "78"), "u x-wise"},
		{"the first parts are a row longer", parts("80", "80", "79", "79"), "u x-wise"},
		{"too far off for x-wise", parts("20", "20", "20", "17"), "u pages 0*20 1*20 2*20 3*18"},
	} {
		r := build(t, c.p, DefaultOptions())
		if got := placement(r.Plan); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if lost := r.After.RemotePct() - r.Best.RemotePct(); lost > 1 {
			t.Errorf("%s: %.2f points lost", c.name, lost)
		}
	}
}

// allocations redraws the heap objects of p, one per line, as allocations of one
// call stack.
func allocations(p *profile.Profile, overlaps bool, ranks ...int) *profile.Profile {
	next := make(map[int]int)
	for i := range p.Objects {
		o := &p.Objects[i]
		o.Site, o.Name = 0, "alloc"
		if len(ranks) > 0 {
			o.Rank = ranks[i]
		}
		o.Ordinal = next[o.Rank]
		o.Overlaps = overlaps && o.Ordinal > 0
		next[o.Rank]++
	}
	p.Sites = p.Sites[:1]
	return p
}

func repeat(n int, line func(i int) string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line(i)
	}
	return lines
}

func TestAllocations(t *testing.T) {
	half := func(n int) func(int) string {
		return func(i int) string {
			if i < n/2 {
				return picture("r heap", "2 x 0!1 900 0")
			}
			return picture("r heap", "2 x 0!1 0 900")
		}
	}
	for _, c := range []struct {
		name string
		p    *profile.Profile
		want string
	}{
		{"one buffer again and again", allocations(profiletest.Draw(2, 1, repeat(5, func(int) string {
			return picture("b heap", "4 x 0!1 900 0", "4 x 0!1 0 900")
		})...), false), "alloc x-wise"},
		{"rows of a matrix", allocations(profiletest.Draw(2, 1, repeat(10, half(10))...), true), "alloc, 0 to 9 of thread 0 x-wise [0:0+10]"},
		{"rows, each split alike", allocations(profiletest.Draw(2, 1, repeat(10, func(int) string {
			return picture("r heap", "1 x 0!1 900 0", "1 x 0!1 0 900")
		})...), true), "alloc x-wise"},
		{"two generations of rows", func() *profile.Profile {
			p := allocations(profiletest.Draw(2, 1, append(repeat(10, half(10)), repeat(10, half(10))...)...), true)
			p.Objects[10].Overlaps = false
			return p
		}(), "alloc, 0 to 9 of thread 0 x-wise [0:0+10]; alloc, 10 to 19 of thread 0 x-wise [0:10+10]"},
		{"different uses", allocations(profiletest.Draw(2, 1,
			picture("b heap", "4 x 0!1 0 900"), picture("b heap", "4 x 0 900 0"), picture("b heap", "2 x 0!1 0 500", "2 x 0!1 500 0"),
		), false), "alloc, 0 of thread 0 bind 1 [0:0+1]; alloc, 2 of thread 0 pages 1*2 0*2 [0:2+1]"},
		{"each thread its own", allocations(profiletest.Draw(2, 1,
			picture("b heap", "4 x 0 900 0"), picture("b heap", "4 x 1 0 900")), false, 0, 1), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.p.Check(); err != nil {
				t.Fatal(err)
			}
			r := build(t, c.p, DefaultOptions())
			if got := placement(r.Plan); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestOnly(t *testing.T) {
	// work wants the pages on node 1, back on node 0 and more so.
	p := profiletest.Draw(2, 1, picture("u heap", "16 x 0!1 0 900 / 2000 0"))
	if got := placement(build(t, p, DefaultOptions()).Plan); got != "" {
		t.Errorf("whole run: %q, want nothing", got)
	}
	opt := DefaultOptions()
	opt.Only = []string{"work"}
	r := build(t, p, opt)
	if got := placement(r.Plan); got != "u bind 1" {
		t.Errorf("only work: %q, want u bind 1", got)
	}
	if got := r.Plan.Predict; got != (plan.Predict{RemoteBefore: 100, RemoteAfter: 0}) {
		t.Errorf("only work: %+v", got)
	}
	if d := cmp.Diff([]string{"work"}, r.Plan.From.Only); d != "" {
		t.Error(d)
	}
	opt.Only = []string{"nonsense"}
	if _, err := Build(p, opt); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("an unknown loop: %v", err)
	}
}

func TestOneNode(t *testing.T) {
	if _, err := Build(profiletest.Draw(1, 4, "u heap: 0 1 1 1 1"), DefaultOptions()); !errors.Is(err, topo.ErrOneNode) {
		t.Errorf("got %v, want ErrOneNode", err)
	}
	p := profiletest.Draw(2, 1, "u heap: 0 1 1")
	p.Run.Topology.Nodes[1].NoMemory = true
	if _, err := Build(p, DefaultOptions()); !errors.Is(err, topo.ErrOneNode) {
		t.Errorf("one node with memory: got %v, want ErrOneNode", err)
	}
}

func TestNodeWithoutMemory(t *testing.T) {
	p := profiletest.Draw(3, 1, picture("u heap", "6 x 0!1 900 0 0", "6 x 0!1 0 900 800", "6 x 0!1 0 0 900"))
	p.Run.Topology.Nodes[2].NoMemory = true
	for _, e := range build(t, p, DefaultOptions()).Plan.Objects {
		for i, n := range e.Place.Homes(18, 3) {
			if n == 2 {
				t.Errorf("%v puts page %d on a node without memory", e.Place, i)
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!1 0 9")
	p.Run.Plan, p.Run.Complete = "old.plan.yaml", false
	r := build(t, p, DefaultOptions())
	for _, want := range []string{"old.plan.yaml in force", "cut short", "accesses of all levels were counted"} {
		if !strings.Contains(strings.Join(r.Warnings, "\n"), want) || !strings.Contains(strings.Join(r.Plan.Notes, "\n"), want) {
			t.Errorf("no warning and note about %q in %q", want, r.Warnings)
		}
	}
	if !r.AllLevels {
		t.Error("ten accesses are enough")
	}
}

func TestNotes(t *testing.T) {
	p := profiletest.Draw(2, 1,
		picture("even heap", "16 x 0 900 900", "16 x 1 900 900"),
		picture("fine heap", "16 x 0 900 0", "16 x 1 0 900"),
		picture("tiny heap", "1 x 0!1 0 15"),
		picture("crumbs small", "16 x 0!1 0 900"))
	notes := strings.Join(build(t, p, DefaultOptions()).Plan.Notes, "\n")
	for _, want := range []string{
		"2 objects are placed by first touch already", "1 object is left out: all together they would save at most 0.01 points",
		"even: placement cannot help", "smaller than a page",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
}

func TestEntry(t *testing.T) {
	p := profiletest.Draw(2, 1, picture("u heap", "8 x 0!1 900 0", "2 x ", "6 x 0!1 0 900"))
	e := build(t, p, DefaultOptions()).Plan.Objects[0]
	for _, want := range []string{"Serial initialisation: first touched by thread 0 on node 0 in main (init.c:5)", "node 0 (57 %), node 1 (43 %)", "100.0 % of the DRAM accesses"} {
		if !strings.Contains(e.Why, want) {
			t.Errorf("no %q in %q", want, e.Why)
		}
	}
	if got, want := e.Touched.String(), "1*8 -*2 1*6"; got != want {
		t.Errorf("touched %s, want %s", got, want)
	}
	if len(e.Stack) != 1 || e.Stack[0].Module != (plan.Module{Name: "app", BuildID: "abcd"}) || e.Stack[0].Line != 3 {
		t.Errorf("stack %+v", e.Stack)
	}
}

// What an entry says was touched is no more than the profile saw, of every
// object that it places.
func TestTouched(t *testing.T) {
	all := profiletest.Draw(2, 1, picture("u heap", "4 x 0 900 0"))
	holes := profiletest.Draw(2, 1, picture("u heap", "8 x 0 900 0"), picture("u heap", "2 x ", "6 x 0 900 0"), picture("u heap", "3 x 0 900 0", "1 x "))
	disjoint := profiletest.Draw(2, 1, picture("u heap", "4 x 0 900 0", "4 x "), picture("u heap", "4 x ", "4 x 0 900 0"))
	for _, c := range []struct {
		p    *profile.Profile
		unit unit
		want string
	}{
		{all, unit{objects: []int{0}, pages: 4}, "1*4"},
		{holes, unit{objects: []int{1}, pages: 8, instance: &plan.Instance{First: 1, Count: 1}}, "-*2 1*6"},
		{holes, unit{objects: []int{0, 1}, pages: 8}, "-*2 1*6"},
		{holes, unit{objects: []int{0, 1, 2}, pages: 8}, "-*2 1*4 -*1 1*1"},
		{holes, unit{objects: []int{2, 0}, pages: 4}, "1*3 -*1"},
		{holes, unit{objects: []int{0, 1}, pages: 24, instance: &plan.Instance{Count: 3}}, "1*8 -*2 1*6 -*8"},
		{disjoint, unit{objects: []int{0, 1}, pages: 8}, ""}, // -*8 would place nothing
		{disjoint, unit{objects: []int{0}, pages: 8, instance: &plan.Instance{Count: 1}}, "1*4 -*4"},
	} {
		for o := range c.p.Objects {
			c.p.Objects[o].Ordinal = o
		}
		d, err := newDemand(c.p, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if got := d.touched(&c.unit).String(); got != c.want {
			t.Errorf("objects %v: %s, want %s", c.unit.objects, got, c.want)
		}
	}
	ragged := plan.Runs{{Node: 1, Count: 2}, {Node: -1, Count: 1}, {Node: 1, Count: 5}, {Node: -1, Count: 1}, {Node: 1, Count: 2}, {Node: -1, Count: 3}, {Node: 1, Count: 1}}
	if got, want := coarse(ragged, 5).String(), "1*2 -*1 1*8 -*3 1*1"; got != want {
		t.Errorf("coarse %s, want %s: every touched page counts", got, want)
	}
}

func TestLimits(t *testing.T) {
	lines := repeat(30, func(i int) string { return fmt.Sprintf("u%d heap: 0!1 0 %d", i, 100+i) })
	opt := DefaultOptions()
	opt.MaxEntries = 10
	r := build(t, profiletest.Draw(2, 1, lines...), opt)
	if len(r.Plan.Objects) != 10 || r.Plan.Objects[0].Name != "u29" || r.Plan.Objects[9].Name != "u20" {
		t.Errorf("got %s", placement(r.Plan))
	}
	if !strings.Contains(strings.Join(r.Plan.Notes, "\n"), "20 entries are beyond") {
		t.Errorf("notes %q", r.Plan.Notes)
	}
	opt = DefaultOptions()
	opt.MaxInstances = 5
	p := allocations(profiletest.Draw(2, 1, repeat(30, func(i int) string {
		return picture("b heap", fmt.Sprintf("%d x 0!1 %d %d", 1+i%3, i%2*100, (i+1)%2*(100+i)))
	})...), false)
	if r = build(t, p, opt); len(r.Plan.Objects) != 5 {
		t.Errorf("%d entries of one stack: %s", len(r.Plan.Objects), placement(r.Plan))
	}
}

// random draws a profile of random objects on nodes × cpus.
func random(r *rand.Rand, nodes, cpus int) *profile.Profile {
	kinds := []string{"heap", "heap", "global", "mapping", "small", "stack"}
	lines := repeat(1+r.IntN(8), func(i int) string {
		shape, pages := r.IntN(4), 1+r.IntN(30)
		s := make([]string, pages)
		for j := range s {
			if r.IntN(8) == 0 {
				continue
			}
			s[j] = fmt.Sprint(r.IntN(nodes))
			if r.IntN(2) == 0 {
				s[j] = "0!1"
			}
			for t := range nodes * cpus {
				count := r.IntN(20)
				if shape == 0 && t == j*nodes*cpus/pages || shape == 1 && t == j/2%(nodes*cpus) || shape == 2 && t == 1 {
					count += 900
				}
				s[j] += fmt.Sprint(" ", count)
			}
		}
		return fmt.Sprintf("o%d %s: %s", i, kinds[r.IntN(len(kinds))], strings.Join(s, " | "))
	})
	p := profiletest.Draw(nodes, cpus, lines...)
	if r.IntN(2) == 0 { // some of them are allocations of one stack
		next := make(map[int]int)
		site := -1
		for i := range p.Objects {
			if o := &p.Objects[i]; o.Kind == profile.Heap {
				if site < 0 {
					site = o.Site
				}
				o.Site, o.Rank = site, r.IntN(2)
				o.Ordinal = next[o.Rank]
				o.Overlaps = o.Ordinal > 0 && r.IntN(2) == 0
				o.Head = []int{0, 16, 3000}[r.IntN(3)]
				o.Bytes -= int64(o.Head)
				next[o.Rank]++
			}
		}
	}
	return p
}

// TestProperties: a plan never promises more remote accesses than there were,
// nor fewer than the best page map leaves; the same profile gives the same
// bytes; every plan reads back; renumbering the nodes changes no promise by
// more than descriptions may lose.
func TestProperties(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	for seed := range rounds {
		nodes, cpus := 2+seed%3, 1+seed%2
		p := random(rand.New(rand.NewPCG(uint64(seed), 1)), nodes, cpus)
		opt := DefaultOptions()
		opt.MinDRAM = 0
		r := build(t, p, opt)
		if r.After.Remote > r.Before.Remote || r.After.Remote < r.Best.Remote {
			t.Fatalf("seed %d: remote %d, planned %d, best %d", seed, r.Before.Remote, r.After.Remote, r.Best.Remote)
		}
		for _, d := range r.Decisions {
			if d.After > d.Before {
				t.Errorf("seed %d: %s: %d -> %d", seed, d.Name, d.Before, d.After)
			}
		}
		var a, b bytes.Buffer
		if err := plan.Write(&a, r.Plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := plan.Write(&b, build(t, p, opt).Plan); err != nil || a.String() != b.String() {
			t.Fatalf("seed %d: two plans of one profile differ (%v)", seed, err)
		}
		if _, err := plan.Read(bytes.NewReader(a.Bytes())); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := build(t, permuted(p, nodes), opt)
		if diff := s.Plan.Predict.RemoteAfter - r.Plan.Predict.RemoteAfter; diff > 2*opt.Tolerance+0.1 || diff < -2*opt.Tolerance-0.1 {
			t.Errorf("seed %d: with nodes renumbered %.2f %% instead of %.2f %%", seed, s.Plan.Predict.RemoteAfter, r.Plan.Predict.RemoteAfter)
		}
		if s.Plan.Predict.RemoteBefore != r.Plan.Predict.RemoteBefore || s.Best.Remote != r.Best.Remote {
			t.Errorf("seed %d: with nodes renumbered the profile itself differs", seed)
		}
	}
}

// permuted is p with node i called (i+1) mod nodes.
func permuted(p *profile.Profile, nodes int) *profile.Profile {
	q := *p
	q.Threads = append([]profile.Thread(nil), p.Threads...)
	q.Pages = append([]profile.Page(nil), p.Pages...)
	next := func(n topo.NodeID) topo.NodeID {
		if n < 0 {
			return n
		}
		return (n + 1) % topo.NodeID(nodes)
	}
	for i := range q.Threads {
		q.Threads[i].Node = next(q.Threads[i].Node)
	}
	for i := range q.Pages {
		q.Pages[i].Home = next(q.Pages[i].Home)
	}
	return &q
}

// TestPermutedMaps: where a plan has page maps only, renumbering the nodes
// renumbers the maps and changes nothing else.
func TestPermutedMaps(t *testing.T) {
	for seed := range 50 {
		p := random(rand.New(rand.NewPCG(uint64(seed), 2)), 3, 1)
		d, err := newDemand(p, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		e, err := newDemand(permuted(p, 3), DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		g, h := d.groups(), e.groups()
		for i := range g {
			u, v := d.alike(&g[i]), e.alike(&h[i])
			a, b := d.pageMap(&u), e.pageMap(&v)
			same := len(a.Map) == len(b.Map)
			for k := 0; same && k < len(a.Map); k++ {
				same = a.Map[k].Node < 0 && b.Map[k].Node < 0 || b.Map[k].Node == (a.Map[k].Node+1)%3
			}
			// Between two nodes that use a page alike the lower number wins.
			if !same && (len(a.Map) == 0 || d.evaluate(&u, a) != e.evaluate(&v, b)) {
				t.Fatalf("seed %d: %v became %v", seed, a.Map, b.Map)
			}
		}
	}
}

// TestRunCost: pages that differ by less than a change of node costs stay in one
// run; with enough accesses they do not.
func TestRunCost(t *testing.T) {
	ragged := func(few int) *profile.Profile {
		main := "2 x 0!1 5000 0"
		odd := fmt.Sprintf("1 x 0!1 0 %d", few)
		return profiletest.Draw(2, 1, picture("u heap", main, odd, main, odd, "9 x 0!1 0 5000", main))
	}
	opt := DefaultOptions()
	opt.MinGain = 0
	if got := placement(build(t, ragged(20), opt).Plan); got != "u pages 0*5 1*10 0*2" {
		t.Errorf("few accesses: %s", got)
	}
	if got := placement(build(t, ragged(5000), opt).Plan); got != "u pages 0*2 1*1 0*2 1*10 0*2" {
		t.Errorf("many accesses: %s", got)
	}
	opt.RunCost = 0
	if got := placement(build(t, ragged(20), opt).Plan); got != "u pages 0*2 1*1 0*2 1*10 0*2" {
		t.Errorf("no cost: %s", got)
	}
}

func TestDynamicLoop(t *testing.T) {
	// Each page was used by one node, which one is chance.
	rng := rand.New(rand.NewPCG(1, 2))
	pages := repeat(256, func(int) string {
		uses := []int{0, 0, 0, 0}
		uses[rng.IntN(4)] = 900
		return fmt.Sprintf("0 %d %d %d %d", uses[0], uses[1], uses[2], uses[3])
	})
	for _, dynamic := range []bool{false, true} {
		p := profiletest.Draw(4, 1, "u heap: "+strings.Join(pages, " | "))
		p.Regions[profiletest.Work].Dynamic = dynamic
		r := build(t, p, DefaultOptions())
		notes := strings.Join(r.Plan.Notes, "\n")
		if got := strings.Contains(notes, "OpenMP hands out the work of"); got != dynamic {
			t.Errorf("dynamic %v: notes\n%s", dynamic, notes)
		}
		if after := r.After.RemotePct(); dynamic && (after < 70 || after > 80) || !dynamic && after > 1 {
			t.Errorf("dynamic %v: %.1f %% -> %.1f %%, best %.1f %%", dynamic, r.Before.RemotePct(), after, r.Best.RemotePct())
		}
		if r.Before.Known != 256*900 {
			t.Errorf("dynamic %v: %d accesses, want %d", dynamic, r.Before.Known, 256*900)
		}
		for _, e := range r.Plan.Objects {
			if dynamic && e.Place.Policy == plan.Pages {
				t.Errorf("a page map of chance: %s", e.Place.Map)
			}
		}
	}
	// First touched by the loop itself: left to first touch it stays local.
	p := profiletest.Draw(2, 1, picture("u heap", "8 x 0 900 0", "8 x 1 0 900"))
	p.Regions[profiletest.Work].Dynamic = true
	if r := build(t, p, DefaultOptions()); placement(r.Plan) != "" || r.After.Remote != 0 {
		t.Errorf("got %q, %d remote", placement(r.Plan), r.After.Remote)
	}
}

// TestSecondRun: threads outside OpenMP that use pages in no order may take jobs
// from a queue, or parts of an irregular array that are theirs. Another run tells.
func TestSecondRun(t *testing.T) {
	run := func(seed uint64) *profile.Profile {
		rng := rand.New(rand.NewPCG(seed, 2))
		pages := repeat(256, func(int) string {
			return "0!1" + strings.Repeat(" 0", 1+rng.IntN(7)) + " 900"
		})
		p := profiletest.Draw(4, 2, "u heap: "+strings.Join(pages, " | "))
		p.Regions[profiletest.Work].Kind = profile.Function
		return p
	}
	for _, c := range []struct {
		name    string
		again   []*profile.Profile
		after   float64 // at most, or at least where negative
		warning string
	}{
		{"one run", nil, -60, "looks handed out at run time, as by a thread pool"},
		{"the same again", []*profile.Profile{run(1)}, 1, ""},
		{"another one", []*profile.Profile{run(3)}, -60, "other threads did the work of"},
		{"two of three alike", []*profile.Profile{run(1), run(3)}, 60, "other threads did the work of"},
	} {
		opt := DefaultOptions()
		opt.Again = further(c.again...)
		r, err := Build(run(1), opt)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(r.Warnings, "\n"); (c.warning == "") != (got == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.name, got, c.warning)
		}
		if after := r.After.RemotePct(); c.after > 0 && after > c.after || c.after < 0 && after < -c.after {
			t.Errorf("%s: %.1f %% -> %.1f %%", c.name, r.Before.RemotePct(), after)
		}
		if r.After.Remote > r.Before.Remote {
			t.Errorf("%s: %d -> %d", c.name, r.Before.Remote, r.After.Remote)
		}
	}
}

func further(list ...*profile.Profile) []Further {
	var again []Further
	for i, p := range list {
		again = append(again, Further{File: fmt.Sprintf("again-%d", i), Checksum: fmt.Sprint("sum", i), Profile: p})
	}
	return again
}

// TestComparable: what cannot be compared is refused, by the name of its file.
func TestComparable(t *testing.T) {
	block := func() *profile.Profile {
		return profiletest.Draw(4, 2, picture("u heap", "32 x 0!1 900", "32 x 0!1 0 0 900", "32 x 0!1 0 0 0 0 900", "32 x 0!1 0 0 0 0 0 0 900"))
	}
	for _, c := range []struct {
		name   string
		change func(p *profile.Profile)
		sum    string
		want   string // of the error; "" is none
	}{
		{"another run", func(p *profile.Profile) { p.Run.Start = p.Run.Start.Add(1) }, "b", ""},
		{"another command", func(p *profile.Profile) { p.Run.Command = []string{"./other"} }, "b", "again.nprof: it is of [\"./other\"]"},
		{"another machine", func(p *profile.Profile) { p.Run.Bind = "spread" }, "b", "give profiles of one machine"},
		{"another period", func(p *profile.Profile) { p.Run.Period = 1000 }, "b", "one --period"},
		{"another build", func(p *profile.Profile) { p.Modules[0].BuildID = "ef01" }, "b", "another build of app"},
		{"another folder", func(p *profile.Profile) { p.Modules[0].Path = "/home/app" }, "b", ""},
		{"fewer threads", func(p *profile.Profile) { p.Threads[7].Rank = 6 }, "b", "it has 7 threads, the first 8"},
		{"the same file", func(*profile.Profile) {}, "a", "again.nprof: it is of the same run as the first profile"},
		{"a copy", func(p *profile.Profile) { p.Run.Start = time.Unix(1e9, 0) }, "b", "it is of the same run as the first profile"},
		{"other code", func(p *profile.Profile) { p.Regions[profiletest.Work].Line++ }, "b", "again.nprof: it has no accesses by the code"},
	} {
		first, again := block(), block()
		first.Run.Start = time.Unix(1e9, 0)
		c.change(again)
		opt := DefaultOptions()
		opt.Profile, opt.Again = "a", []Further{{"again.nprof", c.sum, again}}
		r, err := Build(first, opt)
		switch {
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case err == nil && c.want != "":
			t.Errorf("%s: accepted", c.name)
		case err == nil && (len(r.Warnings) > 0 || len(r.Plan.From.Again) != 1 || r.Plan.From.Again[0] != "b"):
			t.Errorf("%s: warnings %q, from %+v", c.name, r.Warnings, r.Plan.From)
		}
	}
	// Threads that end and begin share ranks; one or two more is not another run.
	first, again := block(), block()
	for _, p := range []*profile.Profile{first, again} {
		p.Regions[profiletest.Work].Kind, p.Regions[profiletest.Work].Thread = profile.Function, "work"
	}
	again.Threads[7].Rank = 6
	opt := DefaultOptions()
	opt.Again = further(again)
	build(t, first, opt)
	// Pages without a counterpart count as chance, and the reader learns so.
	again = block()
	again.Objects[0].Ordinal = 1
	opt.Again = further(again)
	if r := build(t, block(), opt); !strings.Contains(strings.Join(r.Warnings, "\n"), "again-0 has no counterpart of the pages") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// guess draws an array whose pages threads outside OpenMP use in no order, each
// 900 times; first is how each begins, given its user.
func guess(first func(user int) string) *profile.Profile {
	rng := rand.New(rand.NewPCG(1, 2))
	p := profiletest.Draw(4, 2, picture("u heap", repeat(256, func(int) string {
		user := 1 + rng.IntN(7)
		return first(user) + strings.Repeat(" 0", user) + " 900"
	})...))
	p.Regions[profiletest.Work].Kind = profile.Function
	return p
}

// TestGuess: what only looks handed out at run time is placed all the same where
// first touch knows nothing of its use, and predicted as if it was handed out.
func TestGuess(t *testing.T) {
	home := func(user int) string { return fmt.Sprint(user / 2) }
	for _, c := range []struct {
		name          string
		p             *profile.Profile
		entries       int
		expected      float64 // at least, or at most where negative
		same          float64 // at most
		note, noNotes string
	}{
		{"serial initialisation", guess(func(int) string { return "0!1" }), 1, 60, 1, "if its work is handed out at run time, as it looks", "as well as pages can be"},
		{"a good part of it serial", guess(func(int) string { return "0!300" }), 1, 60, 26, "", ""},
		{"half of it serial: more to lose than a guess is worth", guess(func(int) string { return "0!500" }), 0, -70, 70, "", ""},
		{"the main thread uses it as much", guess(func(int) string { return "0!800" }), 0, -60, 60, "", ""},
		{"touched by its user", guess(home), 0, -1, 1, "", "as well as pages can be, and"},
		{"touched by another thread", guess(func(user int) string { return fmt.Sprint((user/2 + 1) % 4) }), 1, 60, 1, "", ""},
	} {
		r := build(t, c.p, DefaultOptions())
		if len(r.Plan.Objects) != c.entries {
			t.Errorf("%s: %d entries, want %d", c.name, len(r.Plan.Objects), c.entries)
		}
		if got := r.After.RemotePct(); c.expected > 0 && got < c.expected || c.expected < 0 && got > -c.expected {
			t.Errorf("%s: %.1f %% expected, want %v", c.name, got, c.expected)
		}
		if got := r.Same.RemotePct(); got > c.same {
			t.Errorf("%s: %.1f %% with the same work, want %v at most", c.name, got, c.same)
		}
		warning := "if the same threads do the same work in each run: " + units.FormatPercent(r.Same.RemotePct())
		if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, warning) || !strings.Contains(got, units.FormatPercent(r.After.RemotePct())) {
			t.Errorf("%s: warnings %q", c.name, got)
		}
		notes := strings.Join(r.Plan.Notes, "\n")
		if !strings.Contains(notes, c.note) || c.noNotes == "as well as pages can be" && strings.Contains(notes, c.noNotes) {
			t.Errorf("%s: notes %q", c.name, notes)
		}
	}
}

// TestEvidence: what is guessed, known and measured is said as what it is.
func TestEvidence(t *testing.T) {
	serial := func(int) string { return "0!1" }
	known := guess(serial)
	known.Regions[profiletest.Work].Kind = profile.Loop
	known.Regions[profiletest.Work].Dynamic = true
	other := guess(serial)
	for i := range other.Rows {
		if r := &other.Rows[i]; r.Region == profiletest.Work {
			r.Thread = 1 + (r.Thread*5+r.Page*3)%7
		}
	}
	for _, c := range []struct {
		p      *profile.Profile
		again  []*profile.Profile
		reason string
		note   string
	}{
		{guess(serial), nil, "though its work looks handed out at run time", "if its work is handed out at run time, as it looks"},
		{known, nil, "OpenMP hands out its work at run time", "because OpenMP hands out the work"},
		{known, []*profile.Profile{known}, "OpenMP hands out its work at run time", "because OpenMP hands out the work"},
		{guess(serial), []*profile.Profile{other}, "other threads use its pages in each run", "in each of the profiled runs"},
	} {
		opt := DefaultOptions()
		opt.Again = further(c.again...)
		opt.MinBalance = 10 // nothing is interleaved
		opt.MinGain = 30    // nor gathered
		r, err := Build(c.p, opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Decisions[0].Reason; !strings.Contains(got, c.reason) {
			t.Errorf("reason %q, want %q", got, c.reason)
		}
		notes := strings.Join(r.Plan.Notes, "\n")
		if !strings.Contains(notes, c.note) || strings.Contains(notes, "as well as pages can be") {
			t.Errorf("notes %q, want %q", notes, c.note)
		}
	}
}

// TestManyLoops: small loops that sum up are named, at least the first of them.
func TestManyLoops(t *testing.T) {
	p := profiletest.Draw(4, 2, picture("u heap", repeat(256, func(i int) string {
		return "0!1" + strings.Repeat(" 0", 1+i*5%7) + " 900"
	})...))
	const loops = 200
	for i := range loops {
		r := p.Regions[profiletest.Work]
		r.Name, r.Dynamic = fmt.Sprintf("loop %d", i), true
		p.Regions = append(p.Regions, r)
	}
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Region == profiletest.Work {
			r.Region = len(p.Regions) - loops + i%loops
		}
	}
	r := build(t, p, DefaultOptions())
	if got := strings.Join(r.Warnings, "\n"); !strings.HasPrefix(got, "OpenMP hands out the work of loop ") || !strings.Contains(got, " more at run time") {
		t.Errorf("warnings %q", got)
	}
}

// TestJobs: what a queue deals are the buffers of a call stack, each as a whole.
func TestJobs(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	p := allocations(profiletest.Draw(4, 2, repeat(64, func(int) string {
		return picture("b heap", "4 x 0!1"+strings.Repeat(" 0", 1+rng.IntN(7))+" 900")
	})...), true)
	p.Regions[profiletest.Work].Kind = profile.Function
	r := build(t, p, DefaultOptions())
	if after := r.After.RemotePct(); after < 65 {
		t.Errorf("%.1f %% -> %.1f %%, %s", r.Before.RemotePct(), after, placement(r.Plan))
	}
}

// A page that threads of two nodes raced for is on the better one in this run and
// may be on the other in the next: the plan says where it should be.
func TestRaces(t *testing.T) {
	for _, op := range []profile.Op{profile.Load, profile.Store} {
		s := newSweeps(4, 1)
		fill, use := s.loop("fill"), s.loop("use")
		s.array("u", 100)
		user := func(page int) int { return page * page / 7 % 4 } // no pattern
		for page := range 100 {
			first := user(page)
			if page%10 == 0 {
				first = (first + 1) % 4 // lost the race: something for the plan to do
			}
			for _, node := range []int{first, user(page), (user(page) + 1) % 4} {
				s.touch(fill, node, page, 1)
				s.Rows[len(s.Rows)-1].Op = op
			}
			s.touch(use, user(page), page, 600)
			s.touch(use, (user(page)+1)%4, page, 400)
		}
		m, left := build(t, s.Profile, DefaultOptions()).Plan.Objects[0].Place, 0
		for page := range 100 {
			if n := m.Home(page, 100, 4); n < 0 {
				left++
			} else if n != user(page) {
				t.Errorf("op %d: page %d on node %d", op, page, n)
			}
		}
		if (left == 0) != (op == profile.Store) {
			t.Errorf("op %d: %d pages are left to first touch", op, left)
		}
	}
}

// What the program places itself it keeps.
func TestPlacedByProgram(t *testing.T) {
	s := newSweeps(4, 2)
	init, use := s.loop("init"), s.loop("use")
	s.array("u", 64)
	for page := range 64 {
		s.touch(init, 0, page, 1)
		s.touch(use, page/16*2, page, 1000)
	}
	p := s.Profile
	if got := placement(build(t, p, DefaultOptions()).Plan); got == "" {
		t.Fatal("nothing to place")
	}
	site := &p.Sites[p.Objects[len(p.Objects)-1].Site]
	site.Frames[0].Inlined = []ident.Location{{Function: "numaopt_alloc", File: "place.c", Line: 289}}
	r := build(t, p, DefaultOptions())
	if got := placement(r.Plan); got != "" {
		t.Errorf("placed: %s", got)
	}
	if !strings.Contains(strings.Join(r.Plan.Notes, "; "), "numaopt_alloc") {
		t.Errorf("no note: %q", r.Plan.Notes)
	}
}
