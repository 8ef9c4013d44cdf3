package sample

import (
	"cmp"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
)

// cell is one row of the table, and more finely than that: by process, object,
// page, thread, CPU, code and what the sample says of its source. A cell is a line
// of the cache, so that adding a sample costs one miss.
type cell struct {
	number  uint64 // of the page: address / page size
	pid     uint32
	tid     uint32
	object  int32 // of the process's space
	region  arena.Region
	how     how
	samples uint32 // 0: the cell is free
	count   uint64 // accesses that the samples stand for
	latency uint64 // cycles, summed over those
	first   uint64 // time of the earliest sample, ns
	late    uint16 // of loads whose node the page's home tells, see newLate; else 0
	_       [6]byte
}

// how is a CPU and what is known of where an access was served, in bits:
// 0-15 CPU, 16-17 level, 18 operation, 19 a node other than the CPU's, 20 the
// processor said so, 21 page fault, 24-31 node of the physical address plus one.
type how uint32

func (h how) cpu() uint32          { return uint32(h & 0xffff) }
func (h how) level() profile.Level { return profile.Level(h >> 16 & 3) }
func (h how) op() profile.Op       { return profile.Op(h >> 18 & 1) }
func (h how) remote() bool         { return h>>19&1 != 0 }
func (h how) said() bool           { return h>>20&1 != 0 }
func (h how) fault() bool          { return h>>21&1 != 0 }
func (h how) home() int            { return int(h>>24) - 1 } // -1 is not known

func newHow(cpu uint32, level profile.Level, op profile.Op, remote, said, fault bool, home int) how {
	bit := func(b bool, at int) how {
		if b {
			return 1 << at
		}
		return 0
	}
	return how(cpu) | how(level)<<16 | how(op)<<18 | bit(remote, 19) | bit(said, 20) | bit(fault, 21) | how(home+1)<<24
}

// same reports whether two cells are of one key.
func (c *cell) same(d *cell) bool {
	return c.number == d.number && c.tid == d.tid && c.how == d.how && c.region == d.region && c.object == d.object && c.pid == d.pid && c.late == d.late
}

// add adds d to c.
func (c *cell) add(d *cell) {
	if c.samples == 0 || d.first < c.first {
		c.first = d.first
	}
	c.samples += d.samples
	c.count += d.count
	c.latency += d.latency
}

// order puts cells of one process in the order of objects, pages, threads, CPUs and
// code. It looks at no more than it must: sorting is a third of the work.
func order(a, b *cell) int {
	switch {
	case a.object != b.object:
		return cmp.Compare(a.object, b.object)
	case a.number != b.number:
		return cmp.Compare(a.number, b.number)
	case a.tid != b.tid:
		return cmp.Compare(a.tid, b.tid)
	case a.how.cpu() != b.how.cpu():
		return cmp.Compare(a.how.cpu(), b.how.cpu())
	case a.region != b.region:
		return cmp.Compare(a.region, b.region)
	}
	return cmp.Or(cmp.Compare(a.how, b.how), cmp.Compare(a.late, b.late))
}

func (c *cell) hash() uint64 {
	h := c.number*0x9e3779b97f4a7c15 ^ uint64(c.tid)<<32 ^ uint64(c.how)
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	h ^= uint64(c.region)<<24 ^ uint64(uint32(c.object)) ^ uint64(c.pid)<<40 ^ uint64(c.late)<<4
	return (h ^ h>>32) * 0x94d049bb133111eb >> 20
}

// cells is a table of cells: open addressing, a power of two of places, at most two
// thirds of them taken.
type cells struct {
	places []cell
	used   int
	batch  [batchSize]cell // waiting to be added
	n      int
	touch  uint32
}

// batchSize is how many cells are added together: their places are fetched from
// memory at the same time, not one after the other.
const batchSize = 64

// put adds a sample's cell, sooner or later; flush does all that wait.
func (t *cells) put() *cell {
	if t.n == batchSize {
		t.flush()
	}
	t.n++
	return &t.batch[t.n-1]
}

func (t *cells) flush() {
	if 3*(t.used+t.n) > 2*len(t.places) {
		t.grow()
	}
	mask := uint64(len(t.places) - 1)
	var at [batchSize]uint64
	for i := range t.batch[:t.n] {
		at[i] = t.batch[i].hash() & mask
		t.touch += t.places[at[i]].samples // a load that nothing waits for
	}
	for i := range t.batch[:t.n] {
		t.add(&t.batch[i], at[i], mask)
	}
	t.n = 0
}

func (t *cells) add(c *cell, at, mask uint64) {
	for {
		p := &t.places[at]
		if p.samples == 0 {
			*p = *c
			t.used++
			return
		}
		if p.same(c) {
			p.add(c)
			return
		}
		at = (at + 1) & mask
	}
}

func (t *cells) grow() {
	old := t.places
	t.places, t.used = newCells(larger(len(old))), 0
	mask := uint64(len(t.places) - 1)
	for i := range old {
		if old[i].samples != 0 {
			t.add(&old[i], old[i].hash()&mask, mask)
		}
	}
	freeCells(old)
}

// all is the cells of a process in order, see order, their regions numbered as settled
// says; the table is gone after it.
func (t *cells) all(pid uint32, settled func(arena.Region) arena.Region) []cell {
	if t.n > 0 {
		t.flush()
	}
	mine := t.places[:0]
	for i := range t.places {
		if c := &t.places[i]; c.samples != 0 && c.pid == pid {
			mine = append(mine, *c)
			last := &mine[len(mine)-1]
			last.region = settled(last.region)
		}
	}
	out := sorted(mine)
	freeCells(t.places)
	t.places = nil
	return out
}

// larger is the next size of a table: small ones are copied seldom, and large ones do
// not waste much.
func larger(n int) int {
	if n < 1<<20 {
		return max(1<<14, 4*n)
	}
	return 2 * n
}
