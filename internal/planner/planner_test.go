package planner

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
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

func repeat(n int, line func(i int) string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line(i)
	}
	return lines
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
