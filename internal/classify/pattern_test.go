package classify

import (
	"fmt"
	"strings"
	"testing"

	"numaopt/internal/access"
	"numaopt/internal/pattern"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/shape"
)

// picture draws pages of which page i is used by the thread work(i) in the one loop
// and by back(i) in the other; -1 is nobody.
func picture(pages int, work, back func(i int) int) string {
	use := func(thread int) string {
		if thread < 0 {
			return ""
		}
		return strings.Repeat("0 ", thread) + "64"
	}
	var list []string
	for i := range pages {
		list = append(list, fmt.Sprintf("0 %s / %s", use(work(i)), use(back(i))))
	}
	return strings.Join(list, " | ")
}

func TestFindPatterns(t *testing.T) {
	const pages, threads = 64, 8
	part := func(i int) int { return i * threads / pages }
	cyclic := func(i int) int { return i % threads }
	down := func(i int) int { return threads - 1 - part(i) }
	nobody := func(int) int { return -1 }
	half := func(i int) int { return min(0, pages/2-i) }
	for _, x := range []struct {
		name       string
		object     string
		work, back func(int) int
		shape      []int64 // with doubles; nil: not known
		want       string  // by loop, conflict, shape
	}{
		{"one loop", "u heap", part, nobody, nil, "1 x-wise"},
		{"up and down", "u heap", part, down, nil, "1 x-wise, 2 inverse, conflict"},
		{"rows inferred", "u heap", part, cyclic, nil, "1 x-wise, 2 y-wise, conflict, 8 rows of 32 KiB"},
		{"rows declared", "u global", part, cyclic, []int64{8, 4096}, "1 x-wise, 2 y-wise, conflict, 8 × 4096 of 8 B"},
		{"rows of another size", "u heap", part, cyclic, []int64{4, 8192}, "1 x-wise, 2 block-cyclic, conflict, 4 × 8192 of 8 B"},
		{"no plan places it", "u small", part, cyclic, nil, ""},
		{"stacks", "u stack", part, cyclic, nil, ""},
		{"half by one node", "u heap", part, half, nil, "1 x-wise, 2 single node, conflict"},
	} {
		p := profiletest.Draw(4, 2, x.object+": "+picture(pages, x.work, x.back))
		var shapes map[int]shape.Shape
		if x.shape != nil {
			shapes = map[int]shape.Shape{0: {Dims: x.shape, Elem: 8, Source: shape.Declared}}
		}
		if got := describe(p, shapes); got != x.want {
			t.Errorf("%s: %s\nwant %s", x.name, got, x.want)
		}
	}
	if got := describe(profiletest.Draw(1, 8, "u heap: "+picture(pages, part, down)), nil); got != "" {
		t.Errorf("on one node: %s", got)
	}
}

func describe(p *profile.Profile, shapes map[int]shape.Shape) string {
	groups, of := access.Groups(p)
	var words []string
	for _, x := range FindPatterns(p, groups, of, shapes) {
		for _, r := range []int{profiletest.Work, profiletest.Back} {
			for _, l := range x.Loops {
				if l.Region == r {
					words = append(words, fmt.Sprintf("%d %s", r, l.Kind))
				}
			}
		}
		if x.Is() {
			words = append(words, "conflict")
		}
		if x.Shape != nil {
			words = append(words, x.Shape.String())
		}
	}
	return strings.Join(words, ", ")
}

// TestInstances holds the layout of several objects of one site: rows that live
// together are one array, a buffer that is allocated again is the same.
func TestInstances(t *testing.T) {
	const rows, pages, threads = 16, 8, 8
	for _, x := range []struct {
		name     string
		overlaps bool
		ranks    int // threads that allocate, in turns
		owner    func(row, page int) int
		want     pattern.Kind
	}{
		{"rows by x", true, 1, func(row, _ int) int { return row * threads / rows }, pattern.XWise},
		{"rows by y", true, 1, func(_, page int) int { return page * threads / pages }, pattern.YWise},
		{"one buffer again", false, 1, func(_, page int) int { return page * threads / pages }, pattern.XWise},
		{"one buffer in turns", false, 1, func(row, _ int) int { return row % threads }, pattern.AllToAll},
		{"a buffer for each thread", false, threads, func(row, _ int) int { return row % threads }, pattern.XWise},
	} {
		var lines []string
		for row := range rows {
			lines = append(lines, fmt.Sprintf("row%d heap: %s", row, picture(pages, func(page int) int { return x.owner(row, page) }, func(int) int { return -1 })))
		}
		p := profiletest.Draw(4, 2, lines...)
		for i := range p.Objects {
			o := &p.Objects[i]
			o.Site, o.Rank, o.Ordinal, o.Overlaps = 0, i%x.ranks, i/x.ranks, x.overlaps && i > 0
		}
		groups, of := access.Groups(p)
		list := FindPatterns(p, groups, of, nil)
		if len(list) != 1 || len(list[0].Loops) != 1 || list[0].Loops[0].Kind != x.want {
			t.Errorf("%s: %+v, want %s", x.name, list, x.want)
		}
	}
}

// TestInCaches: of two nodes that gather from a vector, each misses only the part that
// the other has written, and finds all of it in its LLC afterwards.
func TestInCaches(t *testing.T) {
	const pages, threads = 64, 8
	other := func(i int) int { return (i*threads/pages + threads/2) % threads }
	p := profiletest.Draw(2, 4, "p heap: "+picture(pages, other, func(int) int { return -1 }))
	groups, of := access.Groups(p)
	kind := func() pattern.Kind { return FindPatterns(p, groups, of, nil)[0].Loops[0].Kind }
	if got := kind(); got == pattern.AllToAll {
		t.Errorf("misses alone: %s", got)
	}
	for page := range p.Pages {
		for thread := range p.Threads {
			p.Rows = append(p.Rows, profile.Row{Page: int32(page), Thread: int32(thread), Region: profiletest.Work, Level: profile.LLC, Count: 64 * 64})
		}
	}
	if got := kind(); got != pattern.AllToAll {
		t.Errorf("with what the caches hold: %s, want %s", got, pattern.AllToAll)
	}
}
