package sample

import "numaopt/internal/arena"

// tallyKey is what accesses are added up by: a process, code, and two words of what
// the table is of.
type tallyKey struct {
	a, b   uint64
	pid    uint32
	region arena.Region
}

// tally is a cell of a table of sums.
type tally struct {
	tallyKey
	all    uint64 // accesses; 0: the cell is free
	some   uint64 // of them
	cycles uint64
	first  uint64 // time of the earliest sample, ns
}

func (k *tallyKey) hash() uint64 {
	h := k.a*0x9e3779b97f4a7c15 ^ k.b
	h = (h ^ h>>29 ^ uint64(k.region)<<24 ^ uint64(k.pid)) * 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

func (c *tally) merge(d *tally) {
	c.all += d.all
	c.some += d.some
	c.cycles += d.cycles
	c.first = min(c.first, d.first)
}

// lately is the latest cells, for as long as no other needs their place: what comes one
// after the other is mostly of few.
type lately [recentTallies]tally

const recentTallies = 1 << 7

// add adds a cell; where it takes another's place, that one is put elsewhere.
func (r *lately) add(c *tally, put func(c *tally)) {
	p := &r[c.hash()%recentTallies]
	if p.tallyKey == c.tallyKey {
		p.merge(c)
		return
	}
	if p.all != 0 {
		put(p)
	}
	*p = *c
}

// leave puts all of them elsewhere.
func (r *lately) leave(put func(c *tally)) {
	for i := range r {
		if r[i].all != 0 {
			put(&r[i])
		}
	}
	*r = lately{}
}

// tallies is a table of them: open addressing, a power of two of places, at most two
// thirds of them taken.
type tallies struct {
	places []tally
	used   int
}

func (t *tallies) add(c *tally) {
	if 3*(t.used+1) > 2*len(t.places) {
		t.grow()
	}
	mask := uint64(len(t.places) - 1)
	for at := c.hash() >> 8 & mask; ; at = (at + 1) & mask {
		p := &t.places[at]
		if p.all == 0 {
			*p = *c
			t.used++
			return
		}
		if p.tallyKey == c.tallyKey {
			p.merge(c)
			return
		}
	}
}

func (t *tallies) grow() {
	old := t.places
	t.places, t.used = make([]tally, max(1<<10, 2*len(old))), 0
	for i := range old {
		if old[i].all != 0 {
			t.add(&old[i])
		}
	}
}

// each calls do for every cell, in no particular order.
func (t *tallies) each(do func(c *tally)) {
	for i := range t.places {
		if c := &t.places[i]; c.all != 0 {
			do(c)
		}
	}
}
