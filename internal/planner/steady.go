package planner

import (
	"math/bits"
	"slices"

	"numaopt/internal/profile"
)

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

// near is accesses of one kind to neighbouring pages that were on one node, and about
// as many a page: a page that an LLC serves because it is used often says nothing of
// one that streams through it.
type near struct {
	object, pages, thread, region int
	home                          int16
	op                            profile.Op
	demand                        uint8
}

// llc is the accesses that reached an LLC and those of them that it did not serve;
// reached and missed are what steady has passed on of both.
type llc struct{ lookups, misses, reached, missed uint64 }

// together is the number of leading rows that are of one page, thread, region and
// operation, and their accesses that reached an LLC.
func together(rows []profile.Row) (n int, lookups uint64) {
	first := &rows[0]
	for n = range rows {
		r := &rows[n]
		if r.Page != first.Page || r.Thread != first.Thread || r.Region != first.Region || r.Op != first.Op {
			return n, lookups
		}
		if wide(r) {
			lookups += r.Count
		}
	}
	return len(rows), lookups
}

// steady is p with the chance in what LLCs held taken out of its rows. All sums by
// object, thread, region, operation and home stay. Rows of one page, thread, region
// and operation are expected side by side.
func steady(p *profile.Profile) *profile.Profile {
	if !slices.ContainsFunc(p.Rows, func(r profile.Row) bool { return r.Level == profile.LLC }) {
		return p
	}
	sums, at := []llc(nil), make(map[near]int)
	of := func(r *profile.Row, lookups uint64) *llc {
		pg := &p.Pages[r.Page]
		k := near{pg.Object, pg.Index / steadyPages, int(r.Thread), int(r.Region), int16(pg.Home), r.Op, uint8(bits.Len64(lookups))}
		i, ok := at[k]
		if !ok {
			i = len(sums)
			at[k], sums = i, append(sums, llc{})
		}
		return &sums[i]
	}
	for rows := p.Rows; len(rows) > 0; {
		n, lookups := together(rows)
		if lookups > 0 {
			s := of(&rows[0], lookups)
			s.lookups += lookups
			for _, r := range rows[:n] {
				if r.Level == profile.DRAM {
					s.misses += r.Count
				}
			}
		}
		rows = rows[n:]
	}
	q := *p
	q.Rows = make([]profile.Row, 0, len(p.Rows))
	for rows := p.Rows; len(rows) > 0; {
		n, lookups := together(rows)
		for _, r := range rows[:n] {
			if wide(&r) {
				q.Rows = of(&r, lookups).pass(q.Rows, r)
			} else {
				q.Rows = append(q.Rows, r)
			}
		}
		rows = rows[n:]
	}
	return &q
}

// pass appends to rows the accesses of r as s divides them between LLC and DRAM.
func (s *llc) pass(rows []profile.Row, r profile.Row) []profile.Row {
	s.reached += r.Count
	missed := share(s.reached, s.misses, s.lookups) - s.missed
	s.missed += missed
	hit := r
	hit.Level, hit.Count, hit.Latency = profile.LLC, r.Count-missed, share(r.Latency, r.Count-missed, r.Count)
	r.Level, r.Count, r.Latency = profile.DRAM, missed, r.Latency-hit.Latency
	for _, part := range []*profile.Row{&hit, &r} {
		if part.Count > 0 {
			rows = append(rows, *part)
		}
	}
	return rows
}
