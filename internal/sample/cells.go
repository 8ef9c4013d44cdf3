package sample

import (
	"cmp"
	"math/bits"
	"sync"

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

// cells is the table of cells: shards, so that the workers seldom meet, and so that a
// shard is made larger and sorted while it is in a processor's cache.
type cells struct {
	shards [shards]shard
	first  int // places of a shard that gets its first cells
}

const (
	shardBits = 6
	shards    = 1 << shardBits
)

// shardOf is the shard of a page. Neighbours are in one: a walk through memory adds to
// few lines of the cache.
func shardOf(number uint64) int {
	return int(number >> 4 * 0x9e3779b97f4a7c15 >> (64 - shardBits))
}

// newTableOf is a table for the cells of bytes of records: where a shard is large from
// the beginning it is seldom copied.
func newTableOf(bytes int) *cells {
	const least, most = 1 << 7, 1 << 14
	return &cells{first: min(max(least, 1<<bits.Len(uint(bytes>>12))), most)}
}

// shard is a part of the table: open addressing, a power of two of places, at most two
// thirds of them taken.
type shard struct {
	lock   sync.Mutex
	places []cell
	used   int
	touch  uint32
}

// batches is a worker's cells that wait to be added, by shard.
type batches struct {
	to    *cells
	n     [shards]int
	cells [shards][batchSize]cell
}

// batchSize is how many cells are added together: their places are fetched from
// memory at the same time, not one after the other.
const batchSize = 64

// put adds the cell of a sample of a page, sooner or later; flush does all that wait.
func (b *batches) put(number uint64) *cell {
	i := shardOf(number)
	if b.n[i] == batchSize {
		b.flush(i)
	}
	b.n[i]++
	return &b.cells[i][b.n[i]-1]
}

func (b *batches) flush(i int) {
	t, wait := &b.to.shards[i], b.cells[i][:b.n[i]]
	b.n[i] = 0
	t.lock.Lock()
	defer t.lock.Unlock()
	if 3*(t.used+len(wait)) > 2*len(t.places) {
		t.grow(max(b.to.first, larger(len(t.places))))
	}
	mask := uint64(len(t.places) - 1)
	var at [batchSize]uint64
	for i := range wait {
		at[i] = wait[i].hash() & mask
		t.touch += t.places[at[i]].samples // a load that nothing waits for
	}
	for i := range wait {
		t.add(&wait[i], at[i], mask)
	}
}

func (t *shard) add(c *cell, at, mask uint64) {
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

func (t *shard) grow(places int) {
	old := t.places
	t.places, t.used = newCells(places), 0
	mask := uint64(len(t.places) - 1)
	for i := range old {
		if old[i].samples != 0 {
			t.add(&old[i], old[i].hash()&mask, mask)
		}
	}
	freeCells(old)
}

// all is the cells of a process in order, see order, their regions numbered as settled
// says; the shard is gone after it.
func (t *shard) all(pid uint32, settled func(arena.Region) arena.Region) []cell {
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

// larger is the next size of a shard: small ones are copied seldom, and large ones do
// not waste much.
func larger(n int) int {
	if n < 1<<14 {
		return 4 * n
	}
	return 2 * n
}
