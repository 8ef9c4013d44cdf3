package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/units"
)

// TestMaxRanges: a map of too many ranges is simplified where that loses little, and
// the plan says what it loses; else it says what the runtime does.
func TestMaxRanges(t *testing.T) {
	for _, c := range []struct {
		name string
		odd  int // accesses by another node to one page in three
		want string
		note string
		lost float64
	}{
		{"little to lose", 915, "u pages -*60 1*120", "its best page map has 41 ranges, more than the 8 that memory is divided into by default; with 1 range 0.29 points", 1},
		{"much to lose", 9000, "", "its place has 122 ranges, more than the 8 that memory is divided into by default: pages beyond them", 0},
	} {
		pages := make([]string, 180)
		for i := range pages {
			use := []int{0, 0}
			own := min(i/60, 1)
			use[own] = 900
			if i%3 == 1 {
				use[1-own] = c.odd
			}
			pages[i] = fmt.Sprintf("0!1 %d %d", use[0], use[1])
		}
		p := profiletest.Draw(2, 1, "u heap: "+strings.Join(pages, " | "))
		opt := DefaultOptions()
		opt.MaxRanges = 0
		free := build(t, p, opt)
		opt.MaxRanges = 8
		r := build(t, p, opt)
		if got := placement(r.Plan); c.want != "" && got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
		if got := strings.Join(r.Plan.Notes, "; "); !strings.Contains(got, c.note) {
			t.Errorf("%s: %s", c.name, got)
		}
		if lost := r.After.RemotePct() - free.After.RemotePct(); lost > c.lost {
			t.Errorf("%s: %.2f points lost", c.name, lost)
		}
	}
}

// TestRanges: of distributions that are as good, the one of fewest ranges is tried first.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		dist plan.Distribution
		want int
	}{
		{plan.Distribution{Policy: plan.Bind}, 1},
		{plan.Distribution{Policy: plan.Interleave}, 1},
		{plan.Distribution{Policy: plan.XWise}, 4},
		{plan.Distribution{Policy: plan.BlockCyclic, Block: 3 * units.PageSize}, 22},
		{plan.Distribution{Policy: plan.Pages, Map: plan.Runs{{Node: 1, Count: 2}, {Node: -1, Count: 9}, {Node: 0, Count: 53}}}, 2},
	} {
		if got := ranges(c.dist, 64, 4); got != c.want {
			t.Errorf("%v: %d ranges, want %d", c.dist, got, c.want)
		}
	}
	best := plan.Runs{{Node: 0, Count: 2}, {Node: 1, Count: 6}, {Node: 0, Count: 56}}
	if got := blocks(best, 64, 2); !slices.IsSortedFunc(got, func(a, b int) int { return b - a }) || !slices.Contains(got, 2) {
		t.Errorf("blocks %v", got)
	}
}
