package planner

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"numaopt/internal/profile"
)

// large is a profile of 10⁴ objects of 100 call stacks, 10⁶ pages and 100 loops on 4×2: each loop goes
// up, down or a node further over one object after the other, and a little of each
// page is used by others than the sweep says.
func large(rows int) *profile.Profile {
	const objects, count, each = 10_000, 100, 100 // pages an object
	s := newSweeps(4, 2)
	var loops []int
	for i := range count {
		loops = append(loops, s.loop(fmt.Sprint("l", i)))
	}
	for i := range objects {
		o := s.array(fmt.Sprint("o", i), each)
		s.Objects[o].Site, s.Objects[o].Ordinal, s.Objects[o].Overlaps = o/100, o%100, o%100 > 0
	}
	ways := []func(int) int{s.up, s.up, s.down, s.later(1), s.up}
	s.Rows = make([]profile.Row, 0, rows+2*each)
	for n := 0; len(s.Rows) < rows; n++ {
		l, o := n/7%count, n%objects
		way := ways[l%len(ways)]
		for t := range s.team {
			for i := t * each / s.team; i < (t+1)*each/s.team; i++ {
				s.touch(loops[l], (i+n)%11/10, o*each+i, 9) // some of it is anybody's
				s.touch(loops[l], way(t), o*each+i, uint64(100+n%13))
			}
		}
	}
	return s.Profile
}

// BenchmarkBuild: 10⁷ rows, 10⁴ objects and 100 loops are to take 20 s and 2 GB on
// one core at most, the profile with them.
func BenchmarkBuild(b *testing.B) {
	for _, rows := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			defer debug.SetGCPercent(debug.SetGCPercent(50)) // as the plan command does
			p := large(rows)
			b.ResetTimer()
			for range b.N {
				r, err := Build(p, DefaultOptions())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(r.PagesOnly.RemotePct(), "%pages-only")
				b.ReportMetric(r.After.RemotePct(), "%after")
				b.ReportMetric(float64(len(r.Plan.Loops)), "loops")
			}
		})
	}
}
