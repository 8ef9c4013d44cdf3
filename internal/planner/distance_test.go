package planner

import (
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// ring makes the four nodes of p a ring: neighbours at distance 16, others at 22.
func ring(p *profile.Profile) *profile.Profile {
	for i := range p.Run.Topology.Nodes {
		d := make([]int, 4)
		for j := range d {
			d[j] = []int{10, 16, 22, 16}[(j-i+4)%4]
		}
		p.Run.Topology.Nodes[i].Distances = d
	}
	return p
}

// equal makes all remote nodes equally far.
func equal(p *profile.Profile) *profile.Profile {
	for i := range p.Run.Topology.Nodes {
		d := []int{21, 21, 21, 21}
		d[i] = 10
		p.Run.Topology.Nodes[i].Distances = d
	}
	return p
}

// measured gives p load latencies of n samples for each pair of nodes: those of a ring.
func measured(p *profile.Profile, n uint64) *profile.Profile {
	for i := range 4 {
		for j := range 4 {
			cycles := []uint64{200, 320, 440, 320}[(j-i+4)%4]
			l := profile.Latency{Served: profile.ServedRemoteDRAM, From: topo.NodeID(i), To: topo.NodeID(j), Bucket: profile.LatencyBucket(cycles), Samples: n, Accesses: n, Cycles: n * cycles}
			if i == j {
				l.Served = profile.ServedLocalDRAM
			}
			p.Latencies = append(p.Latencies, l)
		}
	}
	return p
}

// TestDistances: pages that nodes 1 and 3 use most go between them where these are two
// hops apart, though that leaves more accesses remote; the figures are plain counts.
func TestDistances(t *testing.T) {
	pages := func() *profile.Profile { return profiletest.Draw(4, 1, picture("u heap", "64 x 2!1 90 105 0 100")) }
	for _, c := range []struct {
		name   string
		p      *profile.Profile
		want   string
		remote uint64
		note   string
	}{
		{"no distances", pages(), "u bind 1", 64 * 191, ""},
		{"equal distances", equal(pages()), "u bind 1", 64 * 191, ""},
		{"a ring", ring(pages()), "u bind 0", 64 * 205, ""},
		{"a ring by latency", measured(equal(pages()), 100), "u bind 0", 64 * 205, "take 1.6 to 2.2 times as long"},
		{"too few latencies", measured(equal(pages()), 99), "u bind 1", 64 * 191, "distances that the firmware gives"},
	} {
		r := build(t, c.p, DefaultOptions())
		if got := placement(r.Plan); got != c.want || r.After.Remote != c.remote || r.After.Known != 64*296 {
			t.Errorf("%s: %q, %d of %d remote; want %q, %d", c.name, got, r.After.Remote, r.After.Known, c.want, c.remote)
		}
		notes := strings.Join(r.Plan.Notes, "\n")
		if !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "weighed") {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.note)
		}
	}
}

// TestNearlyLocal: memory that is hardly farther than the own is not free.
func TestNearlyLocal(t *testing.T) {
	p := measured(profiletest.Draw(4, 1, picture("u heap", "1 x 0!1 1 1 1 1")), 100)
	for i := range p.Latencies {
		if l := &p.Latencies[i]; l.From != l.To && l.From%2 == l.To%2 {
			l.Cycles = 206 * l.Samples
		}
	}
	d := newDistances(p)
	for from := range 4 {
		for to := range 4 {
			if far := d.far[from*4+to]; (far == 0) != (from == to) {
				t.Errorf("from %d to %d: %d", from, to, far)
			}
		}
	}
}

// TestDistancesOfSchedules: a loop whose chunks use pages of the next node and of the
// one before, which lie on opposite sides of a ring, runs between these.
func TestDistancesOfSchedules(t *testing.T) {
	draw := func() *profile.Profile {
		s := newSweeps(4, 1)
		fix, use := s.loop("fix"), s.loop("use")
		s.array("a", 64)
		for page := range 64 {
			node := page / 16
			s.touch(fix, node, page, 1000)
			s.touch(use, (node+1)%4, page, 100) // the chunk of node+1 uses pages of node
			s.touch(use, (node+3)%4, page, 90)
			s.touch(use, node, page, 5)
		}
		return s.Profile
	}
	opt := DefaultOptions()
	opt.Refuse = map[int]string{profiletest.Back + 1: "it must not"}
	for _, c := range []struct {
		name string
		p    *profile.Profile
		want string
	}{
		{"equal", equal(draw()), "use nodes [1 2 3 0]"},
		{"a ring", ring(draw()), ""},
	} {
		r := build(t, c.p, opt)
		if got := schedules(r.Plan); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.want == "" && !strings.Contains(r.Loops[1].Reason, "to the farthest node") {
			t.Errorf("%s: %+v", c.name, r.Loops)
		}
	}
}
