package sample

import (
	"cmp"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/perfdata"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Latency is a cell of the histograms of load latencies, as profile.Latency has it but
// for names: it is of the object that the page is of.
type Latency struct {
	Object                    int    // number of the arena's object; 0 is none
	Page                      uint64 // its number is any of the object's pages where Object is 0
	Region                    arena.Region
	Served                    profile.Served
	From, To                  topo.NodeID
	Bucket                    int32
	Samples, Accesses, Cycles uint64
}

// latencyKey is what a histogram is of, and the bucket: of a process, an object or
// (negative) a part of the memory that is no object's, and code.
type latencyKey struct {
	pid    uint32
	object int32
	region arena.Region
	path   path
}

// path is how far a load went, and how long it took, in bits: 0-8 bucket, 9-12 where it
// was served, 13-20 its node, 21-28 the node of the page plus one.
type path uint32

func newPath(bucket int32, served profile.Served, from, to topo.NodeID) path {
	return path(bucket) | path(served)<<9 | path(from)<<13 | path(to+1)<<21
}

func (p path) bucket() int32          { return int32(p & 0x1ff) }
func (p path) served() profile.Served { return profile.Served(p >> 9 & 0xf) }
func (p path) from() topo.NodeID      { return topo.NodeID(p >> 13 & 0xff) }
func (p path) to() topo.NodeID        { return topo.NodeID(p>>21&0xff) - 1 }

// A late cell of a page is one of loads that only the page's home can tell the node of:
// as path has it, where they were served, which is never 0, and the bucket.
func newLate(bucket int32, served profile.Served) uint16 {
	return uint16(newPath(bucket, served, 0, -1))
}

type latencyCell struct {
	latencyKey
	samples uint32 // 0: the cell is free
	count   uint64
	cycles  uint64
}

func (k *latencyKey) hash() uint64 {
	h := (uint64(k.path)<<32 ^ uint64(k.region)) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ uint64(uint32(k.object))<<20 ^ uint64(k.pid)) * 0xbf58476d1ce4e5b9
	return h >> 24
}

// latencies is a table of them: open addressing, a power of two of places, at most two
// thirds of them taken.
type latencies struct {
	places []latencyCell
	used   int
}

func (t *latencies) add(c *latencyCell) {
	if 3*(t.used+1) > 2*len(t.places) {
		t.grow()
	}
	mask := uint64(len(t.places) - 1)
	for at := c.hash() & mask; ; at = (at + 1) & mask {
		p := &t.places[at]
		if p.samples == 0 {
			*p = *c
			t.used++
			return
		}
		if p.latencyKey == c.latencyKey {
			p.samples += c.samples
			p.count += c.count
			p.cycles += c.cycles
			return
		}
	}
}

func (t *latencies) grow() {
	old := t.places
	t.places, t.used = make([]latencyCell, max(1<<10, 2*len(old))), 0
	for i := range old {
		if old[i].samples != 0 {
			t.add(&old[i])
		}
	}
}

// latency counts the load of a cell in the histograms. Where only the page's home tells
// which node it went to, the cell is kept apart for it: also that of persistent memory and
// CXL, which are nodes of their own and local to none, but of which processors say no more.
func (w *worker) latency(c *cell, s *perfdata.Sample, served profile.Served, remote bool) {
	from, to := w.r.nodeOf[s.CPU], topo.NodeID(c.how.home())
	bucket := profile.LatencyBucket(s.Latency)
	if to == topo.Unknown && served.Memory() {
		switch nodes := len(w.r.opt.Machine.Nodes); {
		case served == profile.ServedLocalDRAM:
			to = from
		case nodes == 2 && remote:
			to = 1 - from
		default:
			c.late = newLate(bucket, served)
			return
		}
	}
	object := c.object
	if object == 0 {
		object = w.part(c.number)
	}
	w.latencies.add(&latencyCell{latencyKey{c.pid, object, c.region, newPath(bucket, served, from, to)}, c.samples, c.count, c.latency})
}

// served is where a load was served, as finely as the processor tells; remote is as
// Level has it.
func served(d perfdata.DataSrc, remote bool) profile.Served {
	const sameNode = 1 // hops: another core of the node, which AMD calls remote
	l := d.Level()
	remote = remote && d.Hops() != sameNode
	switch d.LevelNum() {
	case perfdata.NumL1:
		return profile.ServedL1
	case perfdata.NumLFB, perfdata.NumL2MHB:
		return profile.ServedLFB
	case perfdata.NumL2:
		return profile.ServedL2
	case perfdata.NumRAM:
		return dram(remote)
	case perfdata.NumPMEM:
		return profile.ServedPMEM
	case perfdata.NumCXL:
		return profile.ServedCXL
	case perfdata.NumL3, perfdata.NumL4, perfdata.NumMSC, perfdata.NumAnyCache:
		return cache(d, remote)
	}
	switch {
	case l&(perfdata.LevelLocalRAM|perfdata.LevelRemRAM1|perfdata.LevelRemRAM2) != 0:
		return dram(remote)
	case l&(perfdata.LevelL3|perfdata.LevelRemCache1|perfdata.LevelRemCache2) != 0:
		return cache(d, remote)
	case l&perfdata.LevelL2 != 0:
		return profile.ServedL2
	case l&perfdata.LevelLFB != 0:
		return profile.ServedLFB
	case l&perfdata.LevelL1 != 0:
		return profile.ServedL1
	}
	return profile.ServedUnknown
}

func dram(remote bool) profile.Served {
	if remote {
		return profile.ServedRemoteDRAM
	}
	return profile.ServedLocalDRAM
}

// cache is which cache beyond a core's own served a load.
func cache(d perfdata.DataSrc, remote bool) profile.Served {
	hitm := d.Snoop()&perfdata.SnoopHITM != 0
	switch {
	case remote && hitm:
		return profile.ServedRemoteHITM
	case remote:
		return profile.ServedRemoteCache
	case hitm:
		return profile.ServedLocalHITM
	case d.Level()&perfdata.LevelMiss != 0: // missed the last level, and no more is said
		return profile.ServedUnknown
	}
	return profile.ServedL3
}

// histograms is what the workers counted of t's process, and the portions of its late
// cells; settled are the new numbers of the workers'.
func (t *Table) histograms(workers []*worker, portions []*portion, settled func(arena.Region) arena.Region) []latencyCell {
	if !t.r.stats.Latencies {
		return nil
	}
	var sum latencies
	for _, w := range workers {
		for i := range w.latencies.places {
			c := w.latencies.places[i]
			if c.samples == 0 || int(c.pid) != t.PID {
				continue
			}
			c.region = settled(c.region)
			sum.add(&c)
		}
		w.latencies.places = nil
	}
	for _, o := range portions {
		for i := range o.late.places {
			if c := &o.late.places[i]; c.samples != 0 {
				sum.add(c)
			}
		}
	}
	out := slices.DeleteFunc(sum.places, func(c latencyCell) bool { return c.samples == 0 })
	slices.SortFunc(out, func(a, b latencyCell) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.region, b.region), cmp.Compare(a.path, b.path))
	})
	return out
}

// late adds the late cells of a page: its home is the node, but where that is the
// thread's own, against what the processor said.
func (t *Table) late(p *page, sum *latencies) {
	for i := range p.cells {
		c := &p.cells[i]
		if c.late == 0 {
			continue
		}
		from, to := t.r.nodeOf[c.how.cpu()], topo.NodeID(p.home)
		if to == from {
			to = topo.Unknown
		}
		object := c.object
		if object == 0 {
			parts := t.r.partsOf(c.pid)
			object = parts.object(parts.of(c.number, 0))
		}
		was := path(c.late)
		sum.add(&latencyCell{latencyKey{c.pid, object, c.region, newPath(was.bucket(), was.served(), from, to)}, c.samples, c.count, c.latency})
	}
}

// EachLatency calls do for every cell of the histograms, in no particular order.
func (t *Table) EachLatency(do func(Latency)) {
	parts := t.r.partsOf(uint32(t.PID))
	for i := range t.latencies {
		c := &t.latencies[i]
		l := Latency{Object: max(0, int(c.object)), Region: c.region, Served: c.path.served(), From: c.path.from(), To: c.path.to(),
			Bucket: c.path.bucket(), Samples: uint64(c.samples), Accesses: c.count, Cycles: c.cycles}
		if c.object <= 0 {
			l.Page = parts.page(c.object)
		}
		do(l)
	}
}
