package planner

import (
	"fmt"
	"math/rand/v2"
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
