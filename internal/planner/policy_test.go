package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

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
