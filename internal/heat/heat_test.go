package heat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// picture draws a map: a line for each tile with its homes, the DRAM accesses by
// column.
func picture(m *Map) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pages of %d:", m.Pages, m.Tile)
	for t := range m.Tiles() {
		fmt.Fprintf(&b, " | %v %v", m.Homes[t*(m.Nodes+1):(t+1)*(m.Nodes+1)], m.DRAM[t*len(m.Columns):(t+1)*len(m.Columns)])
	}
	return b.String()
}

func TestOf(t *testing.T) {
	p := profiletest.Draw(2, 2,
		"u heap: 0 9 0 0 1 | 1 0 0 7 0 | | ? 0 0 0 2 | 1 0 0 3/0 0 4",
		"s stack: 0 5",
		"v global: 0 1 2 3 4")
	groups, _ := access.Groups(p)
	for _, c := range []struct {
		name  string
		group int
		opt   Options
		want  string
	}{
		{"pages and threads", 0, Options{Threads, 8, 8}, "5 pages of 1: | [1 0 0] [9 0 0 1] | [0 1 0] [0 0 7 0] | [0 0 0] [0 0 0 0] | [0 0 1] [0 0 0 2] | [0 1 0] [0 0 7 0]"},
		{"tiles of two", 0, Options{Threads, 3, 8}, "5 pages of 2: | [1 1 0] [9 0 7 1] | [0 0 1] [0 0 0 2] | [0 1 0] [0 0 7 0]"},
		{"one tile", 0, Options{Threads, 1, 8}, "5 pages of 8: | [1 2 1] [9 0 14 3]"},
		{"no room", 0, Options{Threads, 0, 0}, "5 pages of 8: | [1 2 1] [9 17]"},
		{"threads merged", 2, Options{Threads, 8, 2}, "1 pages of 1: | [1 0 0] [3 7]"},
		{"nodes", 2, Options{Nodes, 8, 99}, "1 pages of 1: | [1 0 0] [3 7]"},
		{"stack", 1, Options{Threads, 8, 8}, "1 pages of 1: | [1 0 0] [5 0 0 0]"},
	} {
		maps := Of(p, groups, []int{c.group}, c.opt)
		if d := cmp.Diff(c.want, picture(&maps[0])); d != "" || len(maps) != 1 {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	maps := Of(p, groups, []int{2, 0}, DefaultOptions())
	if maps[0].Group != 2 || maps[1].Group != 0 || picture(&maps[1]) != picture(&Of(p, groups, []int{0}, DefaultOptions())[0]) {
		t.Errorf("two groups in one pass: %s", picture(&maps[1]))
	}
}

// A buffer that is allocated again lies over itself; what lives at the same time,
// and what other threads allocate, lies behind.
func TestLayout(t *testing.T) {
	p := profiletest.Draw(2, 1, "b heap: 0 1 | 0 2", "b heap: 1 0 4 | 1 8", "b heap: 0 16", "b heap: 1 0 32")
	for i := range p.Objects {
		p.Objects[i].Site, p.Objects[i].Ordinal = 0, i
	}
	p.Objects[2].Overlaps = true
	p.Objects[3].Rank, p.Objects[3].Ordinal = 1, 0
	groups, _ := access.Groups(p)
	got := picture(&Of(p, groups, []int{0}, DefaultOptions())[0])
	if want := "4 pages of 1: | [1 1 0] [1 4] | [1 1 0] [10 0] | [1 0 0] [16 0] | [0 1 0] [0 32]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A stack's map begins where it was touched, and a mapping of a terabyte has no more
// tiles than another.
func TestExtents(t *testing.T) {
	p := profiletest.Draw(2, 1, "s stack: 0 1", "m mapping: 0 1")
	p.Pages[0].Index = 2000
	p.Objects[1].Bytes, p.Pages[1].Index = 1<<40, 1<<27
	groups, _ := access.Groups(p)
	maps := Of(p, groups, []int{0, 1}, DefaultOptions())
	if maps[0].Pages != 1 || maps[1].Pages != 1<<28 || maps[1].Tiles() != 1024 || maps[1].DRAM[512*2] != 1 {
		t.Errorf("pages %d and %d, %d tiles", maps[0].Pages, maps[1].Pages, maps[1].Tiles())
	}
}

func TestColumns(t *testing.T) {
	p := profiletest.Draw(2, 4, "u heap: 0 1 2 3 4 5 6 7 8")
	p.Threads = append(p.Threads, profile.Thread{Rank: 1, CPU: 6, Node: 1}) // moved
	groups, _ := access.Groups(p)
	var got []string
	for _, c := range Of(p, groups, []int{0}, Options{Threads, 8, 5})[0].Columns {
		got = append(got, fmt.Sprint(int(c.Node), c.Ranks))
	}
	if d := cmp.Diff([]string{"0 [0 1]", "0 [2 3]", "1 [1 4]", "1 [5 6]", "1 [7]"}, got); d != "" {
		t.Error(d)
	}
}

// Each access of the groups is in one cell, at each level of zoom.
func TestCoarser(t *testing.T) {
	var pages []string
	for i := range 100 {
		pages = append(pages, fmt.Sprintf("%d %d %d", i%2, i, 100-i))
	}
	p := profiletest.Draw(2, 1, "u heap: "+strings.Join(pages, " | "))
	p.Rows[0].Level = profile.L2
	groups, _ := access.Groups(p)
	fine := Of(p, groups, []int{0}, DefaultOptions())[0]
	for _, tiles := range []int{1000, 100, 99, 50, 7, 1} {
		m := fine.Coarser(tiles)
		direct := Of(p, groups, []int{0}, Options{Threads, tiles, 64})[0]
		if d := cmp.Diff(&direct, m); d != "" {
			t.Errorf("%d tiles: %s", tiles, d)
		}
	}
	m := fine.Coarser(1)
	if m.DRAM[0]+m.DRAM[1] != 10000-p.Rows[0].Count || m.All[0]+m.All[1] != 10000 || m.Homes[0] != 50 {
		t.Errorf("%+v", m)
	}
}

// BenchmarkOf is the pass over 10⁷ rows for 40 objects of 10⁵.
func BenchmarkOf(b *testing.B) {
	p := profiletest.Draw(4, 16)
	for o := range 10_000 {
		p.Objects = append(p.Objects, profile.Object{Kind: profile.Heap, Site: o / 50, Ordinal: o % 50, Overlaps: true, Bytes: 100 * 4096})
		p.Sites = append(p.Sites, profile.Site{})
		for i := range 100 {
			p.Pages = append(p.Pages, profile.Page{Object: o, Index: i, Home: topo.NodeID(i % 4), Thread: -1, Region: -1, Place: -1})
		}
	}
	for i := range 10_000_000 {
		p.Rows = append(p.Rows, profile.Row{Page: int32(i / 10), Thread: int32(i % 64), Level: profile.DRAM, Count: 1})
	}
	groups, _ := access.Groups(p)
	shown := make([]int, 40)
	for i := range shown {
		shown[i] = i
	}
	b.ResetTimer()
	for range b.N {
		Of(p, groups, shown, DefaultOptions())
	}
}
