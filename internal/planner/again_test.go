package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

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

// TestPartlyAlike: where a part of the work repeats, the loop table and the rows add up to
// the prediction, but for rounding.
func TestPartlyAlike(t *testing.T) {
	drawn := func(seed uint64, unlike int) *profile.Profile {
		same, other := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(seed, 3))
		pages := repeat(256, func(i int) string {
			user := same.IntN(7)
			if i%100 < unlike {
				user = other.IntN(7)
			}
			return "0!1" + strings.Repeat(" 0", 1+user) + " 900"
		})
		return profiletest.Draw(4, 2, "u heap: "+strings.Join(pages, " | "))
	}
	permuted := func(seed uint64, unlike int) *profile.Profile {
		p := crossing(2, 4, 16, nil).Profile
		for i := range p.Rows {
			if r := &p.Rows[i]; seed > 1 && int(r.Page)%100 < unlike {
				r.Thread = (r.Thread + 5) % int32(len(p.Threads))
			}
		}
		return p
	}
	for _, c := range []struct {
		name   string
		run    func(uint64, int) *profile.Profile
		unlike int
	}{{"a loop", drawn, 5}, {"a loop", drawn, 30}, {"a loop", drawn, 60}, {"permuted loops", permuted, 4}} {
		opt := DefaultOptions()
		opt.Again = further(c.run(2, c.unlike))
		r, err := Build(c.run(1, c.unlike), opt)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s, %d %% unlike", c.name, c.unlike)
		if o := r.Outcome; !slices.ContainsFunc(o.Profile.Rows, func(x profile.Row) bool { n := o.d.chance.Repeats(&x); return n > 0 && n < 1 }) {
			t.Errorf("%s: nothing repeats in part", name)
		}
		if (len(r.Plan.Loops) > 0) != (c.name == "permuted loops") {
			t.Errorf("%s: %d loops permuted", name, len(r.Plan.Loops))
		}
		addsUp(t, name, r)
	}
}

func addsUp(t *testing.T, name string, r *Result) {
	t.Helper()
	var before, after, rows uint64
	for _, x := range r.Loops {
		before, after = before+x.Before, after+x.After
	}
	for i := range r.Outcome.Profile.Rows {
		rows += r.Outcome.Remote(&r.Outcome.Profile.Rows[i])
	}
	for what, got := range map[string][2]uint64{"loops before": {before, r.Before.Remote}, "loops": {after, r.After.Remote}, "rows": {rows, r.After.Remote}} {
		if off := int64(got[0]) - int64(got[1]); max(off, -off) > int64(r.Before.Known)/100 {
			t.Errorf("%s: %s have %d remote, the prediction %d of %d", name, what, got[0], got[1], r.Before.Known)
		}
	}
}
