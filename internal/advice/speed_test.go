package advice

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"numaopt/internal/planner"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// large is a profile of 10⁴ objects, 10⁶ pages and 100 loops that all nodes use alike,
// so that every part of Find has work.
func large(rows int) *profile.Profile {
	const objects, loops, each = 10_000, 100, 100
	p := profiletest.Draw(4, 2, "u heap: 0 1")
	site, region := p.Sites[0], p.Regions[profiletest.Work]
	for i := range loops {
		region.Name = fmt.Sprintf("work.c:%d (l)", 100+i)
		region.Line = 100 + i
		p.Regions = append(p.Regions, region)
	}
	p.Rows = make([]profile.Row, 0, rows)
	for o := range objects {
		if o%100 == 0 {
			p.Sites = append(p.Sites, site)
		}
		p.Objects = append(p.Objects, profile.Object{Kind: profile.Heap, Name: fmt.Sprint("o", o/100), Site: len(p.Sites) - 1, Module: -1,
			Ordinal: o % 100, Overlaps: o%100 > 0, Bytes: each * 4096})
		for i := range each {
			p.Pages = append(p.Pages, profile.Page{Object: len(p.Objects) - 1, Index: i, Home: topo.NodeID(i % 4), Thread: -1, Region: -1, Place: -1})
		}
	}
	for n := 0; len(p.Rows) < rows; n++ {
		p.Rows = append(p.Rows, profile.Row{Page: int32(1 + n%(len(p.Pages)-1)), Thread: int32((n + n/7) % 8), Region: int32(3 + n/1000%loops),
			Op: profile.Op(n / 3 % 2), Level: profile.DRAM, Count: uint64(50 + n%13)})
	}
	return p
}

// BenchmarkFind: what it adds to planning grows with the rows.
func BenchmarkFind(b *testing.B) {
	for _, rows := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			defer debug.SetGCPercent(debug.SetGCPercent(50)) // as the plan command does
			p := large(rows)
			r, err := planner.Build(p, planner.DefaultOptions())
			if err != nil {
				b.Fatal(err)
			}
			opt := Options{Planner: planner.DefaultOptions(), MinSave: DefaultMinSave, Read: func(string) []byte { return nil }}
			b.ResetTimer()
			for range b.N {
				if _, err := Find(p, r, opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
