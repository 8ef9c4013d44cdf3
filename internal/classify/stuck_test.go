package classify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/profile/profiletest"
)

func TestFindStuck(t *testing.T) {
	const work, back = profiletest.Work, profiletest.Back
	type regions = []RegionRemote
	for _, c := range []struct {
		name, draw       string
		remote, conflict uint64
		even             int
		regions          regions
	}{
		{"one node each", "u heap: 0 9 | 1 0 9", 0, 0, 0, nil},
		{"wrong home only", "u heap: 1 9 | 0 0 9", 0, 0, 0, nil},
		{"loops that disagree alike", "u heap: 0 9 0/0 9 | 1 0 9/9 0", 18, 18, 2, regions{{back, 18}}},
		{"one loop against another", "u heap: 0 9/0 3 | 1 0 9/3", 6, 6, 0, regions{{back, 6}}},
		{"within one loop", "u heap: 0 9 9 | 1 9 9", 18, 0, 2, regions{{work, 18}}},
		{"one loop mixes, the other agrees", "u heap: 0 9 9/5", 9, 0, 0, regions{{work, 9}}},
		{"serial initialisation does not count", "u heap: 0!9 0 9 | 0!9 0 9", 0, 0, 0, nil},
		{"small objects are not placed", "u small: 0 9 9", 0, 0, 0, nil},
		{"home unknown", "u heap: ? 9 9", 0, 0, 0, nil},
	} {
		p := profiletest.Draw(2, 1, c.draw)
		got := FindStuck(p, Pages(p, DefaultOptions()), NewUses(p), func(i int) int { return p.Pages[i].Object })
		if c.remote == 0 {
			if len(got) != 0 {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Remote != c.remote || got[0].Conflict != c.conflict || got[0].Even.Pages != c.even || !cmp.Equal(got[0].Regions, c.regions) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
