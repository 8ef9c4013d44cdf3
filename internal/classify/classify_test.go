package classify

import (
	"strings"
	"testing"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// letters draws classes: p private, t one thread, n one node, u uniformly
// shared, s shared through serial initialisation only, "=" behind a page that
// is used evenly.
func letters(pages []Page) string {
	var b strings.Builder
	for _, x := range pages {
		switch {
		case x.Class == Private:
			b.WriteByte('p')
		case x.OneThread:
			b.WriteByte('t')
		case x.Class == NonShared:
			b.WriteByte('n')
		case x.SerialOnly:
			b.WriteByte('s')
		default:
			b.WriteByte('u')
		}
		if x.Even {
			b.WriteByte('=')
		}
	}
	return b.String()
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		name string
		draw string // on two nodes of two CPUs
		want string
	}{
		{"a thread each", "u heap: 0 9 | 0 0 9 | 1 0 0 7 | 1 0 0 0 7", "tttt"},
		{"threads of one node", "u heap: 0 5 5 | 1 0 0 3 4", "nn"},
		{"both nodes alike", "u heap: 0 5 0 5 | 1 4 0 0 6", "u=u="},
		{"whatever the counts", "u heap: 0 999 0 1", "u"},
		{"x-wise after serial initialisation", "u heap: 0!5 9 | 0!5 0 9 | 0!5 0 0 9 | 0!5 0 0 0 9", "tnss"},
		{"y-wise after serial initialisation", "u heap: 0!5 9 9 9 9 | 0!5 9 9 9 9", "u=u="},
		{"serial use only", "u heap: 0!5 | 0!5", "tt"},
		{"two loops that disagree", "u heap: 0 5/0 0 5 | 1 0 0 5/0 0 5", "u=t"},
		{"stack and image", "s stack: 0 5 0 5", "p"},
		{"image", "i image: ? 5 5 5 5", "p"},
		{"small objects share", "s small: 0 5 0 5", "u="},
		{"home unknown", "u mapping: ? 5 0 5 | ? 5", "u=t"},
		{"three of four accesses from one node", "u heap: 0 3 0 1", "u"},
		{"touched by a system call only", "u heap: 0!0", "t"},
		{"read by a system call, used elsewhere", "u heap: 0!0 0 0 5; s stack: 0!1", "sp"},
	} {
		p := profiletest.Draw(2, 2, strings.Split(c.draw, ";")...)
		if got := letters(Pages(p, DefaultOptions())); got != c.want {
			t.Errorf("%s: %s: got %s, want %s", c.name, c.draw, got, c.want)
		}
	}
}

// TestRestricted: with Only the first touch from another region does not count.
func TestRestricted(t *testing.T) {
	p := profiletest.Draw(2, 2, "u heap: 0!5 0 0 9 | 0!5 9 0 0/0 0 0 9 | 0!5")
	for _, c := range []struct{ only, want string }{{"", "sut"}, {"work", "tt"}, {"back", "t"}, {"main", "ttt"}} {
		q := p
		if c.only != "" {
			var err error
			if q, err = access.Only(p, []string{c.only}); err != nil {
				t.Fatal(err)
			}
		}
		got := strings.ReplaceAll(letters(Pages(q, DefaultOptions())), "=", "")
		if got != c.want {
			t.Errorf("only %q: got %s, want %s", c.only, got, c.want)
		}
	}
}

func TestThreadsOfTheProgram(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!5 0 9")
	p.Regions[profiletest.Work].Kind = profile.Function
	p.Regions[profiletest.Work].Thread = "worker"
	if got := letters(Pages(p, DefaultOptions())); got != "s" {
		t.Errorf("pthread program: got %s, want s", got)
	}
	p.Regions[profiletest.Main].Thread = "worker" // the initialising thread is a worker
	if got := letters(Pages(p, DefaultOptions())); got != "u" {
		t.Errorf("initialised by a worker: got %s, want u", got)
	}
}

func TestSum(t *testing.T) {
	p := profiletest.Draw(2, 2,
		"u heap: 0!5 9 | 0!5 0 0 9 | 0 5 0 5 | 1 0 0 2 2", "s stack: 0 3")
	pages := Pages(p, DefaultOptions())
	sums := Sum(pages, 2, func(i int) int { return p.Pages[i].Object })
	u := sums[0]
	if u.OneThread.Pages != 1 || u.NonShared.Pages != 2 || u.UniformlyShared.Pages != 2 || u.SerialOnly.Pages != 1 ||
		u.Even.Pages != 1 || u.SerialInit.Pages != 2 || u.Private.Pages != 0 {
		t.Errorf("u: %+v", u)
	}
	if u.UniformlyShared.DRAM != 24 || u.All().Accesses != 42 || u.All().Bytes() != 4*4096 {
		t.Errorf("u: %+v", u)
	}
	if sums[1].Private != (Share{Pages: 1, Accesses: 3, DRAM: 3}) {
		t.Errorf("stack: %+v", sums[1])
	}
	if got := Sum(pages, 1, func(int) int { return -1 })[0]; got != (Sharing{}) {
		t.Errorf("left out: %+v", got)
	}
}

func TestBestRemote(t *testing.T) {
	for _, c := range []struct {
		draw string
		want uint64
	}{
		{"u heap: 0!5 9 | 0!5 0 9", 5},   // the second page moves, its serial stores become remote
		{"u heap: 0 5 5 | 1 3 4", 5 + 3}, // nothing to gain
		{"s stack: 0 1 4", 4},            // stays
		{"u heap: ? 1 4", 0},             // not in the base
		{"s small: 0 1 4", 4},            // not placed singly
		{"u global: 0 1 4 | 1 4 1", 1 + 1},
	} {
		p := profiletest.Draw(2, 1, c.draw)
		got := BestRemote(p, Pages(p, DefaultOptions()), NewUses(p), 1, func(int) int { return 0 })
		if got[0] != c.want {
			t.Errorf("%s: %d stay remote, want %d", c.draw, got[0], c.want)
		}
	}
}

func TestFindSerialInit(t *testing.T) {
	for _, c := range []struct {
		name, draw        string
		used, even, nodes int
		remote, avoidable uint64
		none              bool
	}{
		{"x-wise", "u heap: 0!1 9 | 0!1 0 9 | 0!1 0 0 9 | 0!1 0 0 0 9", 3, 0, 4, 27, 24, false},
		{"used by everybody", "u heap: 0!1 9 9 9 9 | 0!1 9 9 9 9", 2, 2, 4, 54, 0, false},
		{"used at home", "u heap: 0!1 9 | 0!1 9", 0, 0, 0, 0, 0, true},
		{"parallel initialisation", "u heap: 0 9 | 1 0 9", 0, 0, 0, 0, 0, true},
		{"a moved plan", "u heap: 1!5 0 9", 0, 0, 0, 0, 0, true},
		{"dear to initialise", "u heap: 0!9 0 5", 1, 0, 1, 5, 0, false},
		{"stack", "s stack: 0!9 0 50", 0, 0, 0, 0, 0, true},
	} {
		p := profiletest.Draw(4, 1, c.draw)
		got := FindSerialInit(p, Pages(p, DefaultOptions()), NewUses(p), func(i int) int { return p.Pages[i].Object })
		if c.none {
			if len(got) != 0 {
				t.Errorf("%s: found %+v", c.name, got)
			}
			continue
		}
		if len(got) != 1 {
			t.Errorf("%s: %d findings", c.name, len(got))
			continue
		}
		f := got[0]
		if f.Used.Pages != c.used || f.Even.Pages != c.even || f.Nodes != c.nodes || f.Remote != c.remote || f.Avoidable != c.avoidable {
			t.Errorf("%s: %+v", c.name, f)
		}
		if f.Thread != 0 || f.Place != profiletest.Main {
			t.Errorf("%s: first touch by thread %d at %d", c.name, f.Thread, f.Place)
		}
	}
}

// TestPermutedNodes: the numbers of nodes mean nothing.
func TestPermutedNodes(t *testing.T) {
	p := profiletest.Draw(2, 2, "u heap: 0!5 9 | 0!5 0 0 9 | 0 5 0 5 | 1 0 0 2 2", "v global: 1 3 0 0 4 | ? 2")
	want := letters(Pages(p, DefaultOptions()))
	for i := range p.Threads {
		p.Threads[i].Node = 1 - p.Threads[i].Node
	}
	for i := range p.Pages {
		if p.Pages[i].Home != topo.Unknown {
			p.Pages[i].Home = 1 - p.Pages[i].Home
		}
	}
	if got := letters(Pages(p, DefaultOptions())); got != want {
		t.Errorf("after exchanging the nodes %s, before %s", got, want)
	}
}

func BenchmarkPages(b *testing.B) {
	p := profiletest.Draw(4, 2, "u heap: 0 1", "v heap: 1 2")
	p.Objects[0].Bytes = 4096 << 20
	for i := range 250_000 {
		p.Pages = append(p.Pages, profile.Page{Index: i, Home: topo.NodeID(i % 4), Thread: i % 8, Region: 1, Place: 1})
		for j := range 4 {
			p.Rows = append(p.Rows, profile.Row{Page: int32(i), Thread: int32((i + j) % 8), Region: int32(1 + j%2), Level: profile.DRAM, Count: uint64(i%64 + 1)})
		}
	}
	b.ResetTimer()
	for b.Loop() {
		pages := Pages(p, DefaultOptions())
		Sum(pages, len(p.Objects), func(i int) int { return p.Pages[i].Object })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(p.Rows)), "ns/row")
}

// TestReadBeforeWrite: a page that is read before its first write is one page,
// touched by its readers, too.
func TestReadBeforeWrite(t *testing.T) {
	p := profiletest.Draw(2, 2, "u heap: ? 5 0 | 1 0 0 9 | 0 3")
	p.Pages[1].Index = 0
	pages := Pages(p, DefaultOptions())
	if !pages[0].Part || pages[1].Class != UniformlyShared || pages[1].DRAM != 14 || pages[2].Class != NonShared {
		t.Errorf("%+v", pages)
	}
	if all := Sum(pages, 1, func(int) int { return 0 })[0].All(); all.Pages != 2 || all.DRAM != 17 {
		t.Errorf("%+v", all)
	}
	if got := BestRemote(p, pages, NewUses(p), 1, func(int) int { return 0 }); got[0] != 0 {
		t.Errorf("%d stay remote", got[0])
	}
}
