package advice

import (
	"math"
	"strings"
	"testing"

	"numaopt/internal/planner"
)

// Items that count the same accesses are counted once, the better one; no share is
// below 0.
func TestAdd(t *testing.T) {
	item := func(saved float64, region, group int) Item {
		x := Item{Kind: Schedule, saved: saved}
		x.use(region, group)
		return x
	}
	far := func(x Item) Item { x.AtMost = true; return x }
	for _, c := range []struct {
		name   string
		items  []Item
		number int
		want   float64
	}{
		{"one", []Item{item(30, 0, 0)}, 1, 10},
		{"other loops", []Item{item(20, 0, 0), item(15, 1, 0)}, 2, 5},
		{"other objects", []Item{item(20, 0, 0), item(15, 0, 1)}, 2, 5},
		{"the same", []Item{item(20, 0, 0), item(25, 0, 0)}, 2, 15},
		{"more than there are", []Item{item(20, 0, 0), item(90, 1, 0)}, 2, 0},
		{"a bound", []Item{item(20, 0, 0), far(item(25, 1, 0))}, 2, 20},
		{"too little", []Item{item(20, 0, 0), item(.5, 1, 0)}, 1, 20},
	} {
		a := &Advice{Automatic: 40}
		a.add(c.items, planner.Split{Remote: 40, Known: 100}, 1)
		if len(a.Items) != c.number || math.Abs(a.Source-c.want) > 1e-9 {
			t.Errorf("%s: %d items leave %v %%, want %d and %v", c.name, len(a.Items), a.Source, c.number, c.want)
		}
		for _, x := range a.Items {
			if x.Remote < 0 || math.Abs(x.Remote+x.Saves-40) > 1e-9 {
				t.Errorf("%s: %v %% remote, saves %v", c.name, x.Remote, x.Saves)
			}
		}
		if said := strings.Contains(printed(t, a), "do not add up"); said != (c.number > 1) {
			t.Errorf("%s: %s", c.name, printed(t, a))
		}
	}
}
