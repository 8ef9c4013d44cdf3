package planner

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

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
	p.Objects[len(p.Objects)-1].Placed = true
	r := build(t, p, DefaultOptions())
	if got := placement(r.Plan); got != "" {
		t.Errorf("placed: %s", got)
	}
	if x := r.Decisions[0]; x.Place != OwnPlace || x.After != x.Before || x.Before == 0 || r.After.Remote != r.Before.Remote {
		t.Errorf("%+v, remote %d -> %d", x, r.Before.Remote, r.After.Remote)
	}
	if !strings.Contains(strings.Join(r.Plan.Notes, "; "), "places itself") {
		t.Errorf("no note: %q", r.Plan.Notes)
	}
}
