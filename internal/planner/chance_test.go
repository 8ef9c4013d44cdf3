package planner

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/units"
)

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
			r.Region = int32(len(p.Regions) - loops + i%loops)
		}
	}
	r := build(t, p, DefaultOptions())
	if got := strings.Join(r.Warnings, "\n"); !strings.HasPrefix(got, "OpenMP hands out the work of loop ") || !strings.Contains(got, " more at run time") {
		t.Errorf("warnings %q", got)
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
