package planner

import "numaopt/internal/profile"

// Which lines of an array an LLC of about its size still holds is chance: it hangs
// on which page frames the kernel found, and the next run finds others. A page that
// had luck there has few DRAM accesses, one that had none has many, of whichever
// node; a plan that gave each page to the node with less luck would save much in the
// profiled run and nothing in another. So what leaves the cores' own caches is taken
// as counted, and the part of it that the LLC does not serve as it is on average
// nearby: in the steadyPages pages around, in the same loop, for the same thread.

// steadyPages is how many neighbouring pages of an object have one share of DRAM
// accesses, of those that one thread used in one loop: enough for some luck of each
// kind, few enough for an array whose parts are used differently. With 16, 64 and 1024
// the prediction for ft of testdata/programs, whose threads have 1 page in 8, was 2.3,
// 1.3 and 1.4 points below what the guest counted; 3.6 without.
const steadyPages = 64

// near is accesses of one kind to neighbouring pages that were on one node.
type near struct {
	object, pages, thread, region int
	home                          int16
	op                            profile.Op
}

// llc is the accesses that reached an LLC and those of them that it did not serve;
// reached and missed are what steady has passed on of both.
type llc struct{ lookups, misses, reached, missed uint64 }

// steady is p with the chance in what LLCs held taken out of its rows. All sums by
// object, thread, region, operation and home stay.
func steady(p *profile.Profile) *profile.Profile {
	sums := make(map[near]*llc)
	of := func(r *profile.Row) *llc {
		pg := &p.Pages[r.Page]
		k := near{pg.Object, pg.Index / steadyPages, r.Thread, r.Region, int16(pg.Home), r.Op}
		s := sums[k]
		if s == nil {
			s = new(llc)
			sums[k] = s
		}
		return s
	}
	rows := make([]profile.Row, 0, len(p.Rows))
	for i := range p.Rows {
		if r := &p.Rows[i]; wide(r) {
			s := of(r)
			s.lookups += r.Count
			if r.Level == profile.DRAM {
				s.misses += r.Count
			}
		}
	}
	for i := range p.Rows {
		r := p.Rows[i]
		if !wide(&r) {
			rows = append(rows, r)
			continue
		}
		s, count := of(&r), r.Count
		s.reached += count
		missed := share(s.reached, s.misses, s.lookups) - s.missed
		s.missed += missed
		for _, part := range []struct {
			level profile.Level
			count uint64
		}{{profile.LLC, count - missed}, {profile.DRAM, missed}} {
			if part.count > 0 {
				r.Level, r.Count = part.level, part.count
				rows = append(rows, r)
			}
		}
	}
	q := *p
	q.Rows = rows
	return &q
}
