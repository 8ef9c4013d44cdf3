package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// sweeps draws profiles of programs whose loops sweep arrays, one thread a CPU.
type sweeps struct {
	*profile.Profile
	team int
}

func newSweeps(nodes, cpus int) *sweeps {
	return &sweeps{profiletest.Draw(nodes, cpus), nodes * cpus}
}

// loop adds a loop of its own outlined function, static and of libomp unless edited.
func (s *sweeps) loop(name string, edit ...func(*profile.Region)) int {
	i := len(s.Regions)
	at := func(offset int) ident.Code {
		return ident.Code{Offset: uint64(offset), Inlined: []ident.Location{{Function: name, File: "k.c", Line: i, FunctionLine: i - 2}}}
	}
	r := profile.Region{Kind: profile.Loop, Name: fmt.Sprintf("k.c:%d (%s)", i, name), Function: name, Code: at(0x1000 * i),
		Site: at(0x1000*i + 0x10), Runtime: "libomp", Schedule: "static"}
	for _, e := range edit {
		e(&r)
	}
	s.Regions = append(s.Regions, r)
	return i
}

// array adds a heap object of untouched pages.
func (s *sweeps) array(name string, pages int) int {
	o := len(s.Objects)
	s.Sites = append(s.Sites, profile.Site{Frames: []ident.Code{{Offset: uint64(0x100000 + o), Symbol: "main"}}})
	s.Objects = append(s.Objects, profile.Object{Kind: profile.Heap, Name: name, Site: len(s.Sites) - 1, Module: -1, Bytes: int64(pages) * 4096})
	for i := range pages {
		s.Pages = append(s.Pages, profile.Page{Object: o, Index: i, Home: topo.Unknown, Thread: -1, Region: -1, Place: -1})
	}
	return o
}

// sweep makes thread t use, in a loop, what chunk(t) is of object o cut into as many
// equal parts as there are threads: 1000 accesses a page. Pages that nobody had
// touched get their homes.
func (s *sweeps) sweep(loop, o int, chunk func(t int) int) {
	pages := s.Objects[o].Pages()
	base := slices.IndexFunc(s.Pages, func(g profile.Page) bool { return g.Object == o })
	for t := range s.team {
		from, to := float64(chunk(t)*pages)/float64(s.team), float64((chunk(t)+1)*pages)/float64(s.team)
		for i := int(from); i < pages && float64(i) < to; i++ {
			part := min(to, float64(i+1)) - max(from, float64(i))
			s.touch(loop, t, base+i, uint64(1000*part))
		}
	}
}

func (s *sweeps) touch(loop, t, page int, count uint64) {
	if count == 0 {
		return
	}
	if g := &s.Pages[page]; g.Home == topo.Unknown {
		g.Home, g.Thread, g.Region = s.Threads[t].Node, t, loop
	}
	s.Rows = append(s.Rows, profile.Row{Page: int32(page), Thread: int32(t), Region: int32(loop), Level: profile.DRAM, Count: count})
}

func (s *sweeps) up(t int) int   { return t }
func (s *sweeps) down(t int) int { return s.team - 1 - t }

// later is the chunks of the next node but by-1.
func (s *sweeps) later(by int) func(t int) int {
	cpus := s.team / len(s.Run.Topology.Nodes)
	return func(t int) int { return (t + by*cpus) % s.team }
}

// schedules is the loops of a plan, one line each.
func schedules(p *plan.Plan) string {
	var lines []string
	for i := range p.Loops {
		l := &p.Loops[i]
		line := l.Function + " " + string(l.Schedule)
		if len(l.Nodes) > 0 {
			line += fmt.Sprint(" ", l.Nodes)
		}
		if l.Group > 0 {
			line += fmt.Sprint(" group ", l.Group)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// lu is shaped like NPB lu: an array filled in order, two sweeps up, one down.
func lu(nodes, cpus, pages int) *sweeps {
	s := newSweeps(nodes, cpus)
	init, blts, rhs, buts := s.loop("init"), s.loop("blts"), s.loop("rhs"), s.loop("buts")
	u := s.array("u", pages)
	s.sweep(init, u, s.up)
	s.sweep(blts, u, s.up)
	s.sweep(rhs, u, s.up)
	s.sweep(buts, u, s.down)
	return s
}

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func() *sweeps
		want string
		// remote % with pages only at least, with schedules at most
		only, after float64
	}{
		{"a descending sweep", func() *sweeps { return lu(4, 2, 403) }, "buts static-inverse", 24, 1},
		{"on two nodes", func() *sweeps { return lu(2, 4, 403) }, "buts static-inverse", 24, 1},
		{"on eight nodes", func() *sweeps { return lu(8, 1, 803) }, "buts static-inverse", 24, 1},
		{"more descending than ascending", func() *sweeps {
			s := lu(4, 2, 400)
			s.sweep(s.loop("jacu"), 0, s.down)
			s.sweep(s.loop("l2"), 0, s.down)
			s.sweep(s.loop("l3"), 0, s.down)
			return s
		}, "blts static-inverse; init static-inverse; rhs static-inverse", 42, 1},
		{"the mirror image is better by a hair", func() *sweeps {
			s := lu(4, 2, 400)
			for page := range 100 { // the main thread uses the end, which would be on its node
				s.touch(profiletest.Main, 0, 300+page, 60)
			}
			return s
		}, "buts static-inverse", 24, 1},
		{"a consumer on the next node", func() *sweeps {
			s := newSweeps(4, 2)
			a, b, u := s.loop("produce"), s.loop("consume"), s.array("u", 400)
			for range 3 {
				s.sweep(a, u, s.up)
			}
			s.sweep(b, u, s.later(1))
			return s
		}, "consume nodes [3 0 1 2]", 24, 0},
		{"any permutation of eight nodes", func() *sweeps {
			s := newSweeps(8, 2)
			a, b, u := s.loop("produce"), s.loop("consume"), s.array("u", 800)
			for range 2 {
				s.sweep(a, u, s.up)
			}
			order := []int{3, 0, 7, 1, 6, 2, 5, 4}
			s.sweep(b, u, func(t int) int { return order[t/2]*2 + t%2 })
			return s
		}, "consume nodes [1 3 5 0 7 6 4 2]", 30, 0},
		{"nothing to gain", func() *sweeps {
			s := newSweeps(4, 2)
			u := s.array("u", 400)
			s.sweep(s.loop("a"), u, s.up)
			s.sweep(s.loop("b"), u, s.up)
			return s
		}, "", 0, 0},
		{"pages alone do it", func() *sweeps {
			s := newSweeps(4, 2)
			u, v := s.array("u", 400), s.array("v", 400)
			s.sweep(s.loop("a"), u, s.up)
			s.sweep(s.loop("b"), v, s.down)
			return s
		}, "", 0, 0},
		{"one loop that reads everything", func() *sweeps {
			s := newSweeps(4, 2)
			u, a := s.array("u", 400), s.loop("a")
			for k := range s.team {
				s.sweep(a, u, func(t int) int { return (t + k) % s.team })
			}
			return s
		}, "", 74, 76},
		{"a loop for two arrays that disagree", func() *sweeps {
			s := lu(4, 2, 400) // buts also walks w, as nobody else does: its pages follow
			s.sweep(6, s.array("w", 400), s.up)
			return s
		}, "buts static-inverse", 19, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.draw()
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			r := build(t, s.Profile, DefaultOptions())
			if got := schedules(r.Plan); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if only, after := r.PagesOnly.RemotePct(), r.After.RemotePct(); only < c.only || after > c.after || after > only {
				t.Errorf("as it is %.1f %%, pages only %.1f %%, with schedules %.1f %%; want %v and %v", r.Before.RemotePct(), only, after, c.only, c.after)
			}
			checkPrediction(t, s.Profile, r)
		})
	}
}

// checkPrediction evaluates a plan of heap objects by its words alone: each page
// where its entry says, or where the permuted loop touches it first, each access
// by the thread that the schedule gives its chunk to.
func checkPrediction(t *testing.T, p *profile.Profile, r *Result) {
	t.Helper()
	if got, want := byHand(p, r.Plan), r.After.Remote; got != want {
		t.Errorf("by hand %d remote accesses, predicted %d", got, want)
	}
}

func byHand(p *profile.Profile, pl *plan.Plan) (remote uint64) {
	nodes := len(p.Run.Topology.Nodes)
	runner := func(region, thread int) topo.NodeID {
		n := p.Threads[thread].Node
		for i := range pl.Loops {
			if l := &pl.Loops[i]; region >= 0 && l.Offset == p.Regions[region].Site.Offset {
				// Who takes chunk c = thread?
				for t := range p.Threads {
					each := len(p.Threads) / nodes
					chunk := len(p.Threads) - 1 - t
					if l.Schedule == plan.ByNodes {
						chunk = l.Nodes[t/each]*each + t%each
					}
					if chunk == thread {
						n = p.Threads[t].Node
					}
				}
			}
		}
		return n
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		g := &p.Pages[row.Page]
		home := runner(g.Region, max(0, g.Thread))
		for k := range pl.Objects {
			e := &pl.Objects[k]
			if o := &p.Objects[g.Object]; e.Name == o.Name {
				if n := e.Place.Home(g.Index, o.Pages(), nodes); n >= 0 {
					home = topo.NodeID(n)
				}
			}
		}
		if runner(int(row.Region), int(row.Thread)) != home {
			remote += row.Count
		}
	}
	return remote
}

// Loops that must be permuted alike get one answer, or none.
func TestLoopGroups(t *testing.T) {
	sameFunction := func(r *profile.Region) { r.Code.Offset = 0x9000 }
	group := func(n int) func(*profile.Region) { return func(r *profile.Region) { r.Group = n } }
	apart := func(int) bool { return true }
	// Two loops of one function: a goes with the ten accesses of u, b against them.
	two := func(edit ...func(*profile.Region)) func() *sweeps {
		return func() *sweeps {
			s := newSweeps(4, 2)
			u := s.array("u", 400)
			all := append([]func(*profile.Region){sameFunction}, edit...)
			main, a, b := s.loop("main"), s.loop("a", all...), s.loop("b", all...)
			for range 3 {
				s.sweep(main, u, s.up)
			}
			s.sweep(a, u, s.up)
			s.sweep(b, u, s.down)
			s.sweep(b, u, s.down)
			return s
		}
	}
	for _, c := range []struct {
		name   string
		draw   func() *sweeps
		apart  func(int) bool
		want   string
		reason string // of b
	}{
		{"one function", two(), nil, "a static-inverse group 1; b static-inverse group 1", ""},
		{"a barrier between that frees them", two(), apart, "b static-inverse", ""},
		{"nowait", two(group(1)), apart, "a static-inverse group 1; b static-inverse group 1", ""},
		{"other groups", func() *sweeps {
			s := two(group(1))()
			s.Regions[5].Group = 2
			return s
		}, apart, "b static-inverse", ""},
		{"one of them dynamic", func() *sweeps {
			s := two(group(1))()
			s.Regions[4].Dynamic = true
			return s
		}, apart, "main static-inverse", "it must be scheduled as k.c:4 (a), which cannot be permuted: any thread may run any of its chunks: it is in a team inside a team, or beside tasks"},
		{"one of them in a library", func() *sweeps {
			s := two(group(1))()
			s.Modules = append(s.Modules, ident.Module{Path: "/tmp/lib.so", BuildID: "ef01"})
			s.Regions[5].Site.Module = 1
			return s
		}, apart, "main static-inverse", "it must be scheduled as a loop of another file, which may be rebuilt, or loaded later, without it"},
		{"one of another schedule, libomp", func() *sweeps {
			s := two(group(1))()
			s.Regions[4].Schedule = ""
			return s
		}, apart, "b static-inverse", ""},
		{"one of unknown schedule, libgomp", func() *sweeps {
			s := two(group(1), func(r *profile.Region) { r.Runtime = "libgomp" })()
			s.Regions[4].Schedule = ""
			return s
		}, apart, "main static-inverse", "it must be scheduled as k.c:4 (a), which cannot be permuted: its schedule is chunked, or not known"},
		{"one call site in two regions", func() *sweeps {
			s := two(group(0))()
			s.Regions[4].Site, s.Regions[4].Code.Offset = s.Regions[5].Site, 0x7777
			return s
		}, apart, "b static-inverse group 1", ""},
	} {
		s := c.draw()
		opt := DefaultOptions()
		opt.Apart = c.apart
		r := build(t, s.Profile, opt)
		if got := schedules(r.Plan); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		for _, l := range r.Loops {
			if l.Region == 5 && c.reason != "" && l.Reason != c.reason {
				t.Errorf("%s: %q, want %q", c.name, l.Reason, c.reason)
			}
		}
		if !s.Regions[4].Dynamic { // what is chance has no one prediction
			checkPrediction(t, s.Profile, r)
		}
	}
}

func TestRefused(t *testing.T) {
	const buts = 6
	for _, c := range []struct {
		name   string
		edit   func(*sweeps, *Options)
		reason string
	}{
		{"told so", func(_ *sweeps, o *Options) { o.Refuse = map[int]string{buts: "the thread number is stored at k.c:6"} }, "stored at k.c:6"},
		{"in a team inside a team", func(s *sweeps, _ *Options) { s.Regions[buts].Dynamic = true }, "in a team inside a team, or beside tasks"},
		{"dynamic, run affine", func(s *sweeps, o *Options) {
			ranAffine(&s.Regions[buts])
			o.Refuse = map[int]string{buts: "the thread number comes from __kmpc_dispatch_init_4"}
		}, "it ran affine for this profile, which plan takes up with --affine"},
		{"its own region, schedule(runtime)", func(s *sweeps, _ *Options) { s.Regions[buts].Site.Module, s.Regions[buts].Runtime = -1, "" }, "no static loop was seen here: schedule(runtime)"},
		{"chunked", func(s *sweeps, _ *Options) { s.Regions[buts].Schedule = "" }, "chunked, or not known"},
		{"a smaller team", func(s *sweeps, _ *Options) {
			s.Rows = slices.DeleteFunc(s.Rows, func(r profile.Row) bool { return r.Region == buts && r.Thread > 3 })
		}, "4 threads run it, and only a team of one thread for each of the 8 CPUs"},
		{"fewer threads", func(s *sweeps, _ *Options) {
			for _, n := range []int{0, 1, 2, 3} {
				s.Run.Topology.Nodes[n].CPUs = append(s.Run.Topology.Nodes[n].CPUs, 10+n)
			}
		}, "8 threads run it, and only a team of one thread for each of the 12 CPUs"},
		{"a thread that moved", func(s *sweeps, _ *Options) {
			s.Threads = append(s.Threads, profile.Thread{Rank: 3, CPU: 0, Node: 0})
			s.touch(buts, 8, 0, 1)
		}, "thread 3 ran on several nodes"},
		{"another run", func(s *sweeps, o *Options) {
			rows := slices.Clone(s.Rows)
			for i := range rows {
				if r := &rows[i]; r.Region == buts {
					r.Thread = (r.Thread + 2 + r.Page%3*2) % int32(s.team)
				}
			}
			again := *s.Profile
			again.Rows = rows
			o.Again = []Further{{File: "again.nprof", Profile: &again}}
		}, "other threads do its work in each run"},
		{"threads not bound", func(s *sweeps, _ *Options) { s.Run.Bind = "none" }, "not bound"},
	} {
		s := lu(4, 2, 400)
		opt := DefaultOptions()
		c.edit(s, &opt)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		r := build(t, s.Profile, opt)
		for _, l := range r.Plan.Loops {
			if l.Function == "buts" {
				t.Errorf("%s: buts is permuted", c.name)
			}
		}
		at := slices.IndexFunc(r.Loops, func(l LoopDecision) bool { return l.Region == buts })
		if at < 0 || !strings.Contains(r.Loops[at].Reason, c.reason) || r.Loops[at].Schedule != "static" && r.Loops[at].Schedule != AsItIs {
			t.Errorf("%s: %+v, want %q", c.name, r.Loops, c.reason)
		}
	}
	opt := DefaultOptions()
	opt.NoSchedules = true
	if r := build(t, lu(4, 2, 400).Profile, opt); len(r.Plan.Loops) > 0 || r.After.RemotePct() < 20 || r.Plan.Predict.PagesOnly != 0 {
		t.Errorf("without schedules: %+v, %v", r.Plan.Loops, r.Plan.Predict)
	}
}

// libgomp does not know the schedule of a loop; that its thread number reaches
// bounds alone is enough.
func TestLibgomp(t *testing.T) {
	for _, c := range []struct {
		refuse map[int]string
		want   string
	}{{nil, ""}, {map[int]string{3: "", 4: "", 5: "", 6: ""}, "buts static-inverse"}, {map[int]string{6: "stored"}, ""}} {
		s := lu(4, 2, 400)
		for i := 3; i <= 6; i++ {
			s.Regions[i].Runtime, s.Regions[i].Schedule = "libgomp", ""
		}
		opt := DefaultOptions()
		opt.Refuse = c.refuse
		if got := schedules(build(t, s.Profile, opt).Plan); got != c.want {
			t.Errorf("%v: got %q, want %q", c.refuse, got, c.want)
		}
	}
}

// What saves little is left static: less than a point of all accesses, or than 2 %
// of those in the loop.
func TestSmallGains(t *testing.T) {
	small := lu(4, 2, 400) // buts is 0.6 % of all
	for range 160 {
		small.sweep(4, 0, small.up)
	}
	slight := newSweeps(4, 2) // b is used by all nodes, a little more against the order
	a, b, u := slight.loop("a"), slight.loop("b"), slight.array("u", 400)
	for range 100 {
		slight.sweep(a, u, slight.up)
	}
	for k := range 80 {
		slight.sweep(b, u, func(t int) int { return (t + k) % 8 })
	}
	slight.sweep(b, u, slight.down)
	for _, c := range []struct {
		name        string
		s           *sweeps
		least, gain float64
		want        string
	}{
		{"little of all", small, 1, 0.02, ""},
		{"little of all, no threshold", small, 0, 0.02, "buts static-inverse"},
		{"little of the loop", slight, 0, 0.02, ""},
		{"little of the loop, no threshold", slight, 0, 0, "b static-inverse"},
	} {
		opt := DefaultOptions()
		opt.MinSchedule, opt.ScheduleGain = c.least, c.gain
		r := build(t, c.s.Profile, opt)
		if got := schedules(r.Plan); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if c.gain > 0 && c.name == "little of the loop" && !strings.Contains(fmt.Sprint(r.Loops), "nothing saves enough, 2.0 % of the accesses in it: static leaves") {
			t.Errorf("%s: %v", c.name, r.Loops)
		}
	}
}

// All nodes use a page alike; the one at home finds it in its LLC and makes fewer
// DRAM accesses. That does not move with the chunks.
func TestCachedAtHome(t *testing.T) {
	for _, hits := range []uint64{0, 1000} {
		s := newSweeps(4, 2)
		a, b, u := s.loop("a"), s.loop("b"), s.array("u", 400)
		s.sweep(a, u, s.up)
		for page := range 400 {
			home := page / 100
			for n := range 4 {
				switch n {
				case home: // cached
					s.Rows = append(s.Rows, profile.Row{Page: int32(page), Thread: int32(2 * n), Region: int32(b), Level: profile.LLC, Count: hits})
				case (home + 1) % 4:
					s.touch(b, 2*n, page, 1000) // all of it, before others put it into an LLC
				default:
					s.touch(b, 2*n, page, 400)
				}
			}
		}
		want := ""
		if hits == 0 {
			want = "a nodes [3 0 1 2]"
		}
		r := build(t, s.Profile, DefaultOptions())
		if got := schedules(r.Plan); got != want {
			t.Errorf("%d hits: got %q, want %q", hits, got, want)
		}
		if hits > 0 && !strings.Contains(fmt.Sprint(r.Loops), "what another saves is only what the caches happened to hold") {
			t.Errorf("%v", r.Loops)
		}
	}
}

// What is a thread's own stays with the thread.
func TestThreadsOwn(t *testing.T) {
	s := lu(4, 2, 400)
	for rank := range s.team {
		for _, kind := range []profile.Kind{profile.Stack, profile.Heap} {
			o := s.array(fmt.Sprint(kind, rank), 1)
			s.Objects[o].Kind, s.Objects[o].Rank = kind, rank
			if kind == profile.Stack {
				s.Objects[o].Site = -1
			}
			page := len(s.Pages) - 1
			s.touch(profiletest.Main, rank, page, 1) // not in the loop
			s.touch(6, rank, page, 50000)
		}
	}
	r := build(t, s.Profile, DefaultOptions())
	if got := schedules(r.Plan); got != "buts static-inverse" {
		t.Errorf("got %q", got)
	}
	// Rank 0's buffer cannot be told from an array of the program: the chunk that
	// used it moves to node 3.
	if most := uint64(50000); r.After.Remote > most {
		t.Errorf("%d remote", r.After.Remote)
	}
}

// A page that a permuted loop touches first is where its chunk runs.
func TestFirstTouchFollows(t *testing.T) {
	s := newSweeps(4, 2)
	a, b := s.loop("a"), s.loop("b")
	u, v := s.array("u", 800), s.array("v", 80)
	s.sweep(a, u, s.up)
	s.sweep(a, u, s.up)
	s.sweep(b, u, s.down)
	s.sweep(b, v, s.up) // b has v to itself: local by first touch, whatever its schedule
	r := build(t, s.Profile, DefaultOptions())
	if got := schedules(r.Plan); got != "b static-inverse" || len(r.Plan.Objects) != 0 || r.After.Remote != 0 {
		t.Errorf("got %q, %s, %d remote", got, placement(r.Plan), r.After.Remote)
	}
	checkPrediction(t, s.Profile, r)
}

// libomp binds the main thread to every CPU in turn before the first loop.
func TestThreadMovedBefore(t *testing.T) {
	s := lu(4, 2, 400)
	s.Threads = append(s.Threads, profile.Thread{Rank: 0, CPU: 7, Node: 3, Pinned: true})
	s.touch(profiletest.Main, 8, 0, 100)
	if got := schedules(build(t, s.Profile, DefaultOptions()).Plan); got != "buts static-inverse" {
		t.Errorf("got %q", got)
	}
}

func TestPlanOfLoops(t *testing.T) {
	r := build(t, lu(4, 2, 403).Profile, DefaultOptions())
	l := r.Plan.Loops[0]
	if l.Name != "k.c:6 (buts)" || l.Module != (plan.Module{Name: "app", BuildID: "abcd"}) || l.Offset != 0x6010 || l.Runtime != "libomp" ||
		l.File != "k.c" || l.Line != 6 || l.FunctionLine != 4 {
		t.Errorf("%+v", l)
	}
	if l.Predict.RemoteBefore < 99 || l.Predict.RemoteAfter > 1 {
		t.Errorf("predicted %+v", l.Predict)
	}
	if p := r.Plan.Predict; p.PagesOnly < 24 || p.RemoteAfter > 1 || p.RemoteBefore < 24 {
		t.Errorf("predicted %+v", p)
	}
	for _, want := range []string{"25.0 % of the DRAM accesses.", "static 25."} {
		if !strings.Contains(l.Why, want) {
			t.Errorf("no %q in %q", want, l.Why)
		}
	}
	if len(r.Loops) != 4 {
		t.Errorf("%d loops are explained", len(r.Loops))
	}
}

// TestExhaustive compares with every combination of the candidates, each page on
// its best node: the search may be no worse than what counts as better.
func TestExhaustive(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		nodes := 2 + seed%3
		s := newSweeps(nodes, 1+seed%2)
		loops := repeatInt(5-nodes/2, func(i int) int { return s.loop(fmt.Sprint("l", i)) })
		for range 3 {
			o := s.array(fmt.Sprint("o", len(s.Objects)), 24)
			for _, l := range loops {
				order := rng.Perm(nodes)
				cpus := s.team / nodes
				for range rng.IntN(3) {
					s.sweep(l, o, func(t int) int { return order[t/cpus]*cpus + t%cpus })
				}
			}
		}
		for range 200 {
			s.touch(loops[rng.IntN(len(loops))], rng.IntN(s.team), rng.IntN(len(s.Pages)), uint64(1+rng.IntN(1000)))
		}
		opt := DefaultOptions()
		opt.MinDRAM, opt.PageGain, opt.ScheduleGain, opt.MinGain = 0, 0, 0, 0 // nothing is pruned
		d, err := newDemand(s.Profile, opt)
		if err != nil {
			t.Fatal(err)
		}
		x := newSearch(d)
		got := x.run()
		least := x.exhaust(make([]schedule, len(x.byGroup)), 0)
		if got.remote > least {
			t.Errorf("seed %d, %d nodes: %d remote, %d are possible", seed, nodes, got.remote, least)
		}
	}
}

func repeatInt(n int, f func(int) int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

// exhaust is the fewest remote accesses with any candidates for the groups from g on.
func (s *search) exhaust(choice []schedule, g int) uint64 {
	if g == len(choice) {
		return s.state(slices.Clone(choice)).remote
	}
	least := ^uint64(0)
	for _, c := range s.candidates(g) {
		choice[g] = c
		least = min(least, s.exhaust(choice, g+1))
	}
	return least
}

func TestAssignment(t *testing.T) {
	for seed := range 200 {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		n := 1 + seed%6
		gain := make([]int64, n*n)
		for i := range gain {
			gain[i] = rng.Int64N(50)
		}
		value := func(to []int) (sum int64) {
			for i, j := range to {
				sum += gain[i*n+j]
			}
			return sum
		}
		most := int64(-1)
		permutations(n, func(to []int) { most = max(most, value(to)) })
		got := assignment(gain, n)
		if sorted := slices.Sorted(slices.Values(got)); len(slices.Compact(sorted)) != n || value(got) != most {
			t.Errorf("seed %d: %v gains %d of %d", seed, got, value(got), most)
		}
	}
}

func TestMerge(t *testing.T) {
	flows := []flow{{2, 1, 0, 5, 6, 1}, {0, 0, 1, 1, 1, 0}, {2, 0, 1, 7, 7, 0}, {2, 1, 0, 6, 7, 2}, {0, 0, 0, 2, 2, 0}, {0, 0, 1, 3, 3, 0}}
	want := []flow{{0, 0, 0, 2, 2, 0}, {0, 0, 1, 4, 4, 0}, {2, 0, 1, 7, 7, 0}, {2, 1, 0, 11, 13, 3}}
	if got := merge(flows, 4); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSchedulesAndChance: a pool of threads whose work is guessed to be chance, beside
// loops that change their schedule. Both figures count the loops as permuted.
func TestSchedulesAndChance(t *testing.T) {
	s := lu(4, 2, 400)
	pool := s.loop("pool", func(r *profile.Region) {
		*r = profile.Region{Kind: profile.Function, Name: "serial in pool", Function: "pool", Thread: "consume", Code: r.Code, Site: ident.Code{Module: -1}}
	})
	w := s.array("w", 256)
	first := slices.IndexFunc(s.Pages, func(g profile.Page) bool { return g.Object == w })
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 256 {
		s.touch(profiletest.Main, 0, first+i, 1)
		s.touch(pool, 1+rng.IntN(7), first+i, 1000)
	}
	r := build(t, s.Profile, DefaultOptions())
	if got := schedules(r.Plan); got != "buts static-inverse" {
		t.Errorf("schedules %q", got)
	}
	if len(r.Plan.Objects) != 1 || r.Plan.Objects[0].Name != "w" {
		t.Errorf("placed %+v", r.Plan.Objects)
	}
	pct := func(what string, s Split, least, most float64) {
		if x := s.RemotePct(); x < least || x > most {
			t.Errorf("%s: %.2f %% remote, want %v to %v", what, x, least, most)
		}
	}
	chance := 100 * 256.0 / (256 + 4*400) // of all accesses, 3/4 of them remote
	pct("before", r.Before, 100*400.0/(256+4*400)+0.7*chance, 100)
	pct("pages only", r.PagesOnly, 100*400.0/(256+4*400)+0.6*chance, 100)
	pct("expected", r.After, 0.6*chance, 0.9*chance)
	pct("the same work", r.Same, 0, 1)
}
