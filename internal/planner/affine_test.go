package planner

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// ranAffine edits a loop to one that ran affine.
func ranAffine(r *profile.Region) { r.Schedule, r.Dynamic, r.Runtime = profile.Affine, true, "libgomp" }

// matrix is a program whose main thread fills an array that an affine loop then uses.
func matrix(nodes, cpus, pages int) *sweeps {
	s := newSweeps(nodes, cpus)
	work := s.loop("work", ranAffine)
	u := s.array("u", pages)
	for i := range s.Pages {
		s.touch(profiletest.Main, 0, i, 1)
	}
	s.sweep(work, u, s.up)
	return s
}

func affineOptions() Options {
	opt := DefaultOptions()
	opt.Affine = true
	return opt
}

func TestAffine(t *testing.T) {
	for _, nodes := range []int{2, 4} {
		s := matrix(nodes, 8/nodes, 512)
		r := build(t, s.Profile, affineOptions())
		if got := schedules(r.Plan); got != "work affine" {
			t.Errorf("%d nodes: %q", nodes, got)
		}
		if got := placement(r.Plan); got != "u x-wise" {
			t.Errorf("%d nodes: %q", nodes, got)
		}
		chance := 100 - 100/float64(nodes)
		if b, a := r.Before.RemotePct(), r.After.RemotePct(); math.Abs(b-chance) > 1 || a > 1 {
			t.Errorf("%d nodes: %.1f %% -> %.1f %%, want %.1f and less than 1", nodes, b, a, chance)
		}
		if got := r.PagesOnly.RemotePct(); math.Abs(got-chance) > 1 {
			t.Errorf("%d nodes: %.1f %% with pages alone, want %.1f", nodes, got, chance)
		}
		if got, want := strings.Join(r.Plan.Notes, "; "), fmt.Sprintf("%.1f %% of remote accesses are the most", chance); !strings.Contains(got, want) {
			t.Errorf("%d nodes: notes %q, want %q", nodes, got, want)
		}
		// Without the option the same profile says what the program does without it.
		r = build(t, s.Profile, DefaultOptions())
		if got := r.After.RemotePct(); schedules(r.Plan) != "" || math.Abs(got-chance) > 1 {
			t.Errorf("%d nodes: %q, %.1f %% without affine loops", nodes, schedules(r.Plan), got)
		}
	}
}

// What a node's part has more than its share is stolen, and remote.
func TestAffineSteals(t *testing.T) {
	s := matrix(4, 2, 512)
	for i := range s.Rows {
		if r := &s.Rows[i]; s.Regions[r.Region].Dynamic {
			r.Count *= uint64(1 + 2*s.Threads[r.Thread].Node) // parts of 1, 3, 5 and 7 sixteenths
		}
	}
	r := build(t, s.Profile, affineOptions())
	if got := r.After.RemotePct(); math.Abs(got-25) > 1 {
		t.Errorf("%.1f %% remote, want 25", got)
	}
	if reason := r.Loops[0].Reason; !strings.Contains(reason, "25.0 % of its work") {
		t.Errorf("reason %q", reason)
	}
	if len(r.Plan.Loops) != 1 || math.Abs(r.Plan.Loops[0].Predict.RemoteAfter-25) > 1 {
		t.Errorf("loops %v", r.Plan.Loops)
	}
}

// Pages that a loop touches first itself are the thief's, the first time.
func TestAffineFirstTouch(t *testing.T) {
	s := newSweeps(4, 2)
	fill := s.loop("fill", ranAffine, func(r *profile.Region) { r.Invocations = 1 })
	s.sweep(fill, s.array("u", 512), s.up)
	for i := range s.Rows {
		s.Rows[i].Count *= uint64(1 + 2*s.Threads[s.Rows[i].Thread].Node)
	}
	// What follows is as if nothing was made affine: 75 % remote, without a reason
	// to place anything; the loop's own pages are local wherever it runs.
	r := build(t, s.Profile, affineOptions())
	if got := r.After.RemotePct(); got > 1 {
		t.Errorf("%.1f %% remote, want none", got)
	}
}

func TestAffineRefused(t *testing.T) {
	plain := matrix(4, 2, 64)
	plain.Regions[len(plain.Regions)-1].Schedule = ""
	unbound := matrix(4, 2, 64)
	unbound.Run.Bind = "none"
	for want, p := range map[string]*profile.Profile{
		"use numaopt profile --affine":      plain.Profile,
		"not bound: profile it with --bind": unbound.Profile,
	} {
		if _, err := Build(p, affineOptions()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	// It saves nothing: only one node uses memory that matters.
	s := matrix(4, 2, 64)
	for i := range s.Rows {
		if s.Regions[s.Rows[i].Region].Dynamic {
			s.Rows[i].Count = 1
		}
	}
	for i := range s.Pages {
		s.touch(profiletest.Main, 0, i, 5000)
	}
	r := build(t, s.Profile, affineOptions())
	if notes := strings.Join(r.Plan.Notes, "\n"); len(r.Plan.Loops) > 0 || !strings.Contains(notes, "no loop is made affine") {
		t.Errorf("%d loops; notes\n%s", len(r.Plan.Loops), notes)
	}
}

// A static loop that no barrier parts from an affine one keeps its own freedom.
func TestAffineBesideStatic(t *testing.T) {
	s := lu(4, 2, 400)
	group := func(r *profile.Region) { r.Group = 1 }
	buts := 0
	for i := range s.Regions {
		if s.Regions[i].Function == "buts" {
			buts, s.Regions[i].Group = i, 1
		}
	}
	extra := s.loop("extra", ranAffine, group)
	s.Regions[extra].Code = s.Regions[buts].Code
	s.sweep(extra, s.array("w", 400), s.up)
	r := build(t, s.Profile, affineOptions())
	if got := schedules(r.Plan); got != "buts static-inverse; extra affine" {
		t.Errorf("got %q", got)
	}
	for _, l := range r.Plan.Loops {
		if l.Schedule == plan.Affine && l.Group != 0 {
			t.Errorf("%s is of group %d", l.Name, l.Group)
		}
	}
}
