package classify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/profile/profiletest"
)

func TestFindEven(t *testing.T) {
	const work, back = profiletest.Work, profiletest.Back
	for _, c := range []struct {
		name, draw     string
		even, conflict int
		regions        []int
	}{
		{"one node each", "u heap: 0 9 | 1 0 9", 0, 0, nil},
		{"loops that disagree", "u heap: 0 9 0/0 9 | 1 0 9/9 0 | 0 9/9", 2, 2, []int{work, back}},
		{"within one loop", "u heap: 0 9 9 | 1 9 9", 2, 0, []int{work}},
		{"one loop mixes, the other does not", "u heap: 0 9 9/0 2", 1, 0, []int{work, back}},
		{"four in turn", "u heap: 0 0 9/9", 1, 1, []int{work, back}},
	} {
		p := profiletest.Draw(2, 1, c.draw)
		got := FindEven(p, Pages(p, DefaultOptions()), func(i int) int { return p.Pages[i].Object })
		if c.even == 0 {
			if len(got) != 0 {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Even.Pages != c.even || got[0].Conflict.Pages != c.conflict || !cmp.Equal(got[0].Regions, c.regions) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
