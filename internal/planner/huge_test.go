package planner

import (
	"fmt"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/units"
)

// thirds is an array of 2048 pages, first touched by the main thread, of which node 0
// uses the first part and node 1 the rest.
func thirds(first int) *profile.Profile {
	return profiletest.Draw(2, 1, picture("u heap", fmt.Sprintf("%d x 0!1 900 0", first), fmt.Sprintf("%d x 0!1 0 900", 2048-first)))
}

// TestPageSize: borders are where units begin, and what that loses is predicted.
func TestPageSize(t *testing.T) {
	global := func(p *profile.Profile, offset uint64) *profile.Profile {
		o := &p.Objects[0]
		o.Kind, o.Site, o.Module, o.Symbol, o.Offset = profile.Global, -1, 0, "u", offset
		return p
	}
	for _, c := range []struct {
		name   string
		p      *profile.Profile
		size   units.Bytes
		want   string
		remote int // pages of which the accesses are remote
	}{
		{"pages", thirds(700), 0, "u pages 0*700 1*1348", 0},
		{"a border within a unit", thirds(700), 2 * units.MiB, "u pages 0*512 1*1536", 188},
		{"the larger part decides", thirds(900), 2 * units.MiB, "u x-wise", 124},
		{"small units", thirds(700), 64 * units.KiB, "u pages 0*704 1*1344", 4},
		{"a border that is one", thirds(1024), 2 * units.MiB, "u x-wise", 0},
		{"a global that begins within a unit", global(thirds(700), 0x200000+100*4096), 2 * units.MiB, "u x-wise", 224},
		{"smaller than a unit", profiletest.Draw(2, 1, picture("u heap", "10 x 0!1 900 0", "20 x 0!1 0 900")), 2 * units.MiB, "u pages 0*10 1*20", 0},
	} {
		if err := c.p.Check(); err != nil {
			t.Fatal(err)
		}
		opt := DefaultOptions()
		opt.PageSize = c.size
		r := build(t, c.p, opt)
		if got := placement(r.Plan); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		// And at most 2048 first touches by the main thread.
		if got := int(r.After.Remote) - 900*c.remote; got < 0 || got > 2048 {
			t.Errorf("%s: %d accesses remote, want those to %d pages", c.name, r.After.Remote, c.remote)
		}
		if r.Plan.PageSize != c.size {
			t.Errorf("%s: page size %v", c.name, r.Plan.PageSize)
		}
	}
}

// TestHugePages: what huge pages would cost is what planning for them predicts, and a
// warning comes only where huge pages that the machine makes are cut.
func TestHugePages(t *testing.T) {
	for _, c := range []struct {
		name    string
		border  int
		enabled string
		warns   bool
	}{
		{"cut, made unasked", 700, "always", true},
		{"cut, made if asked for", 700, "madvise", false},
		{"not cut", 1024, "always", false},
	} {
		p := thirds(c.border)
		p.Run.HugePages = c.enabled
		r := build(t, p, DefaultOptions())
		opt := DefaultOptions()
		opt.PageSize = 2 * units.MiB
		if got, want := r.Decisions[0].Huge, build(t, p, opt).After.Remote; got != want {
			t.Errorf("%s: %d remote with huge pages, planned for them %d", c.name, got, want)
		}
		if got := strings.Contains(strings.Join(r.Warnings, "; "), "--page-size 2M keeps them, at 9.2 % more remote"); got != c.warns {
			t.Errorf("%s: warnings %q", c.name, r.Warnings)
		}
	}
}
