package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
)

// inSweeps makes a loop's region run n times in a row, four times over.
func inSweeps(n int) func(*profile.Region) {
	return func(r *profile.Region) { r.Sweep, r.Invocations = uint64(n), uint64(4*n) }
}

// across is a serial loop of n instances over object o of n x n pages, with the
// parallel loop in it: in instance i, iteration j is of page(i, j).
func (s *sweeps) across(loop, o, n int, page func(i, j int) int) {
	base := slices.IndexFunc(s.Pages, func(g profile.Page) bool { return g.Object == o })
	for i := range n {
		part := uint8(i * profile.SweepParts / n)
		for j := range n {
			s.touch(loop, j*s.team/n, base+page(i, j), 1000)
			r := &s.Rows[len(s.Rows)-1]
			r.First, r.Last = part, part
		}
	}
}

// crossing has two sweeps across one another, and what else says.
func crossing(nodes, cpus, n int, else_ func(s *sweeps, o int)) *sweeps {
	s := newSweeps(nodes, cpus)
	init, x, y := s.loop("init"), s.loop("x", inSweeps(n)), s.loop("y", inSweeps(n))
	o := s.array("a", n*n)
	s.sweep(init, o, s.up)
	for range 4 {
		s.across(x, o, n, func(i, j int) int { return i*n + j })
		s.across(y, o, n, func(i, j int) int { return j*n + i })
	}
	if else_ != nil {
		else_(s, o)
	}
	return s
}

// TestOtherwise: pages that belong to schedules have another place without these.
func TestOtherwise(t *testing.T) {
	opt := DefaultOptions()
	s := crossing(4, 2, 48, nil)
	with := build(t, s.Profile, opt).Plan
	opt.NoSchedules = true
	without := build(t, s.Profile, opt).Plan
	if len(with.Loops) == 0 || len(with.Objects) != 1 {
		t.Fatalf("%s; %s", schedules(with), placement(with))
	}
	want := plan.Distribution{Policy: plan.XWise} // as init touches it
	if len(without.Objects) > 0 {
		want = without.Objects[0].Place
	}
	if got := with.Objects[0].Otherwise; got == nil || !got.Equal(want) {
		t.Errorf("otherwise %v, want %v", got, want)
	}
	for _, e := range without.Objects {
		if e.Otherwise != nil {
			t.Errorf("without schedules: otherwise %v", e.Otherwise)
		}
	}
}

func TestPhases(t *testing.T) {
	const n = 48
	for _, c := range []struct {
		name        string
		draw        *sweeps
		want        []string // loops that are block-exclusive
		only, after float64  // remote %: pages only at least, with schedules at most
	}{
		{"two nodes", crossing(2, 4, n, nil), []string{"x", "y"}, 21, 6},
		{"three nodes", crossing(3, 2, n, nil), []string{"x", "y"}, 29, 8},
		{"four nodes", crossing(4, 2, n, nil), []string{"x", "y"}, 33, 9},
		{"eight nodes", crossing(8, 1, n, nil), []string{"x", "y"}, 38, 10},
		{"up and down again", crossing(4, 2, n, func(s *sweeps, o int) {
			down := s.loop("down", inSweeps(n))
			for range 4 {
				s.across(down, o, n, func(i, j int) int { return (n-1-i)*n + j })
			}
		}), []string{"down", "x", "y"}, 22, 6},
		{"as many instances as nodes", crossing(4, 2, 8, nil), []string{"x", "y"}, 33, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.draw.Check(); err != nil {
				t.Fatal(err)
			}
			r := build(t, c.draw.Profile, DefaultOptions())
			var got []string
			for _, l := range r.Plan.Loops {
				if l.Schedule == plan.BlockExclusive {
					got = append(got, l.Function)
				}
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if only, after := r.PagesOnly.RemotePct(), r.After.RemotePct(); only < c.only || after > c.after {
				t.Errorf("pages only %.1f %%, with schedules %.1f %%; want %v and %v", only, after, c.only, c.after)
			}
			for _, l := range r.Loops {
				if slices.Contains(c.want, strings.Trim(l.Name[strings.Index(l.Name, "("):], "()")) && 100*l.After > l.Accesses {
					t.Errorf("%s: %d of %d remain", l.Name, l.After, l.Accesses)
				}
			}
		})
	}
}

// TestNoPhases has loops whose sweep is not known, or does not help.
func TestNoPhases(t *testing.T) {
	for name, edit := range map[string]func(p *profile.Profile){
		"rows vary": func(p *profile.Profile) {
			for i := range p.Regions {
				p.Regions[i].Sweep = 0
			}
		},
		"shorter than the nodes": func(p *profile.Profile) {
			for i := range p.Regions {
				p.Regions[i].Sweep = min(p.Regions[i].Sweep, 3)
			}
		},
		"every instance uses all": func(p *profile.Profile) {
			for i := range p.Rows {
				if p.Regions[p.Rows[i].Region].Sweep > 0 {
					p.Rows[i].First, p.Rows[i].Last = 0, profile.SweepParts-1
				}
			}
		},
		"one call site in two regions": func(p *profile.Profile) {
			for i := range p.Regions {
				if r := &p.Regions[i]; r.Sweep > 0 {
					r.Site = p.Regions[len(p.Regions)-1].Site
				}
			}
		},
		"two loops in each region": func(p *profile.Profile) {
			for i := range p.Regions {
				if r := p.Regions[i]; r.Sweep > 0 {
					r.Site.Offset += 0x40
					p.Regions = append(p.Regions, r)
				}
			}
		},
		"nodes by turns": func(p *profile.Profile) {
			for i := range p.Threads {
				p.Threads[i].Node ^= p.Threads[i].Node >> 1 & 1 // nodes 0 1 3 2
			}
		},
	} {
		s := crossing(4, 2, 16, nil)
		edit(s.Profile)
		for _, l := range build(t, s.Profile, DefaultOptions()).Plan.Loops {
			if l.Schedule == plan.BlockExclusive {
				t.Errorf("%s: %s is block-exclusive", name, l.Name)
			}
		}
	}
}

// TestPhasesTouchFirst: pages that a block-exclusive loop touches first are where
// it runs then.
func TestPhasesTouchFirst(t *testing.T) {
	const n = 16
	s := newSweeps(4, 2)
	x, y, o := s.loop("x", inSweeps(n)), s.loop("y", inSweeps(n)), s.array("a", n*n)
	s.across(x, o, n, func(i, j int) int { return i*n + j })
	s.across(y, o, n, func(i, j int) int { return j*n + i })
	r := build(t, s.Profile, DefaultOptions())
	if len(r.Plan.Objects) > 0 || len(r.Plan.Loops) == 0 || r.After.Remote > 0 {
		t.Errorf("%d objects, %d loops, %d remote", len(r.Plan.Objects), len(r.Plan.Loops), r.After.Remote)
	}
}

// TestPhasesForLittle: one permutation for all phases is enough where another one in
// the later phases saves next to nothing more.
func TestPhasesForLittle(t *testing.T) {
	const n = 16
	s := newSweeps(4, 2)
	init, use, o := s.loop("init"), s.loop("use", inSweeps(n)), s.array("a", n*n)
	for range 3 {
		s.sweep(init, o, s.up)
	}
	s.across(use, o, n, func(i, j int) int { return (j+n/4*(1+i*4/n))%n*n + i })
	for i := range s.Rows {
		if r := &s.Rows[i]; int(r.Region) == use && r.First >= profile.SweepParts/4 {
			r.Count = 5
		}
	}
	if got := schedules(build(t, s.Profile, DefaultOptions()).Plan); got != "use nodes [3 0 1 2]" {
		t.Errorf("got %q", got)
	}
}

// TestPieces: the pieces of a row add up to it, in phases one after the other.
func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 2 + rng.IntN(7)
		l := &loops{n: n, class: []int{0, 1, 2}, classes: 3, groups: []loopGroup{{sweep: 100}}}
		a, b := rng.IntN(profile.SweepParts), rng.IntN(profile.SweepParts)
		r := &profile.Row{Thread: int32(rng.IntN(3)), Count: rng.Uint64N(1000), First: uint8(min(a, b)), Last: uint8(max(a, b))}
		var sum uint64
		phase := int(r.First) * n / profile.SweepParts
		for x := range l.pieces(0, r) {
			if x.slot != phase*3+int(r.Thread) {
				t.Fatalf("%d nodes, %+v: slot %d, want phase %d", n, r, x.slot, phase)
			}
			sum += x.of(r.Count)
			phase++
		}
		if last := ((int(r.Last)+1)*n - 1) / profile.SweepParts; sum != r.Count || phase != last+1 {
			t.Fatalf("%d nodes, %+v: %d accesses in phases before %d", n, r, sum, phase)
		}
	}
}

// TestTargets: over the phases of a sweep, each node takes each node's chunks once.
func TestTargets(t *testing.T) {
	for n := 2; n <= 8; n++ {
		l := &loops{n: n, classes: n}
		for slot := range n * n {
			l.node = append(l.node, slot%n)
		}
		for _, s := range l.rotations() {
			to, seen := l.targets(s), make(map[[2]int]bool)
			for slot, node := range to {
				seen[[2]int{node, l.node[slot]}] = true
				if q := slot / n; s.nodes[(node+q*s.step)%n] != l.node[slot] {
					t.Errorf("%v: node %d takes chunk %d in phase %d", s, node, l.node[slot], q)
				}
			}
			if len(seen) != n*n {
				t.Errorf("%d nodes, %v: %d pairs of nodes and chunks", n, s, len(seen))
			}
		}
	}
}

// TestBestRotation gives each slot a gain on the node that a schedule takes it to.
func TestBestRotation(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 2; n <= 8; n++ {
		l := &loops{n: n, classes: n, groups: []loopGroup{{sweep: 100, all: uint64(10 * n * n)}}}
		for slot := range n * n {
			l.node = append(l.node, slot%n)
		}
		for _, step := range l.turns() {
			want := schedule{plan.BlockExclusive, rng.Perm(n), step}
			gain := make([]uint64, n*n*n)
			for slot, node := range l.targets(want) {
				gain[slot*n+node] = 10
			}
			if got := l.bestRotation(gain, step); !slices.Equal(l.targets(got), l.targets(want)) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	}
}

// reused is crossing, on four nodes, with a level of caches that keeps count accesses
// to each page from one instance of x to the next.
func reused(n int, level profile.Level, count uint64) *sweeps {
	return crossing(4, 2, n, func(s *sweeps, o int) {
		for i := range s.Rows { // a row of pages is read again by the next instance
			r := s.Rows[i]
			if s.Regions[r.Region].Function == "x" && int(r.First) < (n-1)*profile.SweepParts/n {
				s.Rows[i].Last += uint8(profile.SweepParts / n)
				r.Last, r.Level, r.Count = s.Rows[i].Last, level, count
				s.Rows = append(s.Rows, r)
			}
		}
	})
}

// TestAgain: a line that one instance leaves for the next is a DRAM access more
// where another node runs that, and so only at the borders of phases.
func TestAgain(t *testing.T) {
	const n = 16
	for _, c := range []struct {
		level profile.Level
		count uint64
		want  uint64
	}{
		{profile.L1, 10, 0},
		{profile.L2, 10, 4 * 3 * n * 10}, // at 3 borders of 4 sweeps
		{profile.L2, 1000, 4 * 3 * n * 4 * linesPerPage},
	} {
		p := reused(n, c.level, c.count).Profile
		d, err := newDemand(p, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		r := build(t, p, DefaultOptions())
		if best := newSearch(d).run(); best.remote != r.After.Remote {
			t.Errorf("level %d, %d accesses: the search found %d remote, the plan has %d", c.level, c.count, best.remote, r.After.Remote)
		}
		for _, l := range r.Loops {
			if strings.Contains(l.Name, "(x)") && (l.Again != c.want || !strings.HasPrefix(l.Schedule, "block-exclusive")) {
				t.Errorf("level %d, %d accesses: %d again, want %d; %s", c.level, c.count, l.Again, c.want, l.Schedule)
			}
		}
		if d := r.After.Known - r.Before.Known; d != c.want {
			t.Errorf("level %d, %d accesses: %d more in all, want %d", c.level, c.count, d, c.want)
		}
	}
}

// TestPhasesExhaustive is TestExhaustive with loops that have sweeps.
func TestPhasesExhaustive(t *testing.T) {
	for seed := range 20 {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		nodes, n := 2+seed%3, 12
		s := newSweeps(nodes, 1)
		o := s.array("a", n*n)
		s.sweep(s.loop("init"), o, s.up)
		for i := range 2 {
			l := s.loop(fmt.Sprint("l", i), inSweeps(n))
			turned, up := rng.IntN(2) == 0, rng.IntN(2) == 0
			for range 1 + rng.IntN(3) {
				s.across(l, o, n, func(i, j int) int {
					if up {
						i = n - 1 - i
					}
					if turned {
						return j*n + i
					}
					return i*n + j
				})
			}
		}
		opt := DefaultOptions()
		opt.MinDRAM, opt.PageGain, opt.ScheduleGain, opt.MinGain = 0, 0, 0, 0 // nothing is pruned
		d, err := newDemand(s.Profile, opt)
		if err != nil {
			t.Fatal(err)
		}
		x := newSearch(d)
		got := x.run()
		if least := x.exhaust(make([]schedule, len(x.byGroup)), 0); got.remote > least {
			t.Errorf("seed %d, %d nodes: %d remote, %d are possible", seed, nodes, got.remote, least)
		}
	}
}
