package sample

import (
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
	samples uint32
	count   uint64 // accesses that the samples stand for
	latency uint64 // cycles, summed over those
	first   uint64 // time of the earliest sample, ns
	hash    uint32 // of all that tells cells apart
	late    uint16 // of loads whose node the page's home tells, see newLate; else 0
	_       [2]byte
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
	return c.hash == d.hash && c.number == d.number && c.tid == d.tid && c.how == d.how && c.region == d.region && c.object == d.object && c.pid == d.pid && c.late == d.late
}

// add adds d to c.
func (c *cell) add(d *cell) {
	c.first = min(c.first, d.first)
	c.samples += d.samples
	c.count += d.count
	c.latency += d.latency
}

func (c *cell) newHash() uint32 {
	h := c.number*0x9e3779b97f4a7c15 ^ uint64(c.tid)<<32 ^ uint64(c.how)
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	h ^= uint64(c.region)<<24 ^ uint64(uint32(c.object)) ^ uint64(c.pid)<<40 ^ uint64(c.late)<<4
	return uint32((h ^ h>>32) * 0x94d049bb133111eb >> 32)
}

// cells is the table of cells: shards, so that the workers seldom meet, and so that a
// shard is sorted while it is in a processor's cache.
type cells [shards]shard

const (
	shardBits = 6
	shards    = 1 << shardBits
)

// shardOf is the shard of a page. Neighbours are in one: a walk through memory adds to
// few lines of the cache.
func shardOf(number uint64) int {
	return int(number >> 4 * 0x9e3779b97f4a7c15 >> (64 - shardBits))
}

// shard is a part of the table: cells as they came, and places by their hash, open
// addressing, a power of two of them, at most three quarters of them taken. What grows is the
// places alone: they are small, and the cells stay where they are.
type shard struct {
	lock   sync.Mutex
	cells  []cell
	places []place
	touch  uint32
}

// place is where a cell is: its hash, and its number plus one; 0 is none.
type place uint64

func newPlace(hash uint32, i int) place { return place(hash)<<32 | place(i+1) }

func (p place) hash() uint32 { return uint32(p >> 32) }
func (p place) cell() int    { return int(uint32(p)) - 1 }

// batches is a worker's cells that wait to be added: the recent ones, for as long as no
// other needs their place, since a thread often comes back to a page at once, and
// behind them those that wait for others of their shard.
type batches struct {
	to     *cells
	recent [recents]cell // by hash
	n      [shards]int
	cells  [shards][batchSize]cell
}

const (
	recents = 1 << 9 // of 64 bytes: about a processor's nearest cache
	// batchSize is how many cells are added together: their places are fetched from
	// memory at the same time, not one after the other.
	batchSize = 64
)

// add adds a cell, sooner or later.
func (b *batches) add(c *cell) {
	c.hash = c.newHash()
	r := &b.recent[c.hash%recents]
	if r.same(c) {
		r.add(c)
		return
	}
	b.wait(r)
	*r = *c
}

// wait puts a cell with the others of its shard; one without samples is none.
func (b *batches) wait(c *cell) {
	if c.samples == 0 {
		return
	}
	i := shardOf(c.number)
	b.cells[i][b.n[i]] = *c
	if b.n[i]++; b.n[i] == batchSize {
		b.flush(i)
	}
}

// settle puts the recent cells with the others: what waits is then to be flushed.
func (b *batches) settle() {
	for i := range b.recent {
		b.wait(&b.recent[i])
	}
	clear(b.recent[:])
}

func (b *batches) flush(i int) {
	t, wait := &b.to[i], b.cells[i][:b.n[i]]
	b.n[i] = 0
	t.lock.Lock()
	defer t.lock.Unlock()
	t.reserve(len(wait))
	mask := uint32(len(t.places) - 1)
	var at [batchSize]place
	for i := range wait {
		at[i] = t.places[wait[i].hash&mask]
	}
	for i := range wait {
		if at[i].hash() == wait[i].hash && at[i] != 0 {
			t.touch += t.cells[at[i].cell()].samples // a load that nothing waits for
		}
	}
	for i := range wait {
		t.add(&wait[i], mask)
	}
}

func (t *shard) add(c *cell, mask uint32) {
	at := c.hash & mask
	for ; t.places[at] != 0; at = (at + 1) & mask {
		if p := t.places[at]; p.hash() == c.hash {
			if have := &t.cells[p.cell()]; have.same(c) {
				have.add(c)
				return
			}
		}
	}
	t.places[at] = newPlace(c.hash, len(t.cells))
	t.cells = append(t.cells, *c)
}

// reserve makes room for n more cells.
func (t *shard) reserve(n int) {
	if len(t.cells)+n > cap(t.cells) {
		t.cells = moreCells(t.cells)
	}
	if 4*(len(t.cells)+n) <= 3*len(t.places) {
		return
	}
	old := t.places
	t.places = make([]place, max(1<<8, 2*len(old)))
	mask := uint32(len(t.places) - 1)
	for _, p := range old {
		if p == 0 {
			continue
		}
		at := p.hash() & mask
		for ; t.places[at] != 0; at = (at + 1) & mask {
		}
		t.places[at] = p
	}
}

// all is the cells of a process in order, see sorter, their regions numbered as settled
// says; the shard is gone after it.
func (t *shard) all(pid uint32, settled func(arena.Region) arena.Region, by *sorter) []cell {
	mine := t.cells[:0]
	for i := range t.cells {
		if c := &t.cells[i]; c.pid == pid {
			mine = append(mine, *c)
			last := &mine[len(mine)-1]
			last.region = settled(last.region)
		}
	}
	t.cells, t.places = nil, nil
	by.sort(mine)
	return mine
}
