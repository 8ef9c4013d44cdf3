package sample

import (
	"cmp"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// An interval is a tally of what a thread did in a part of the run with memory of one
// node: a is the part, b has the thread and the node. Some of the accesses are DRAM's.
//
// doing is a thread in bits 32-63, its CPU in bits 16-31 and the node plus one in bits
// 0-15.
type doing uint64

func newDoing(tid, cpu uint32, home topo.NodeID) doing {
	return doing(tid)<<32 | doing(cpu)<<16 | doing(home+1)
}

func (d doing) by() threadCPU     { return threadCPU{uint32(d >> 32), uint32(d >> 16 & 0xffff)} }
func (d doing) home() topo.NodeID { return topo.NodeID(d&0xffff) - 1 }

// intervals is a list of them, in parts of 1<<shift ns: time goes on, so that few are met
// again, and what is there more than once is added up in the end. How long the recording
// is shows only as it is read: parts become twice as long whenever there would be more
// than a profile may have.
type intervals struct {
	recent      lately
	list        []tally
	crowded     int // length at which the list is added up meanwhile
	shift       uint
	least, most uint64 // part
	begun       bool
}

const (
	firstShift = 16      // 66 µs: few threads have two samples in less
	crowd      = 1 << 18 // of 56 bytes
)

// at is the part of a time.
func (t *intervals) at(time uint64) uint64 {
	part := time >> t.shift
	if t.begun && part >= t.least && part <= t.most {
		return part
	}
	if !t.begun {
		t.begun, t.shift, t.crowded = true, firstShift, crowd
		t.least, t.most = time>>t.shift, time>>t.shift
	}
	t.least, t.most = min(t.least, time>>t.shift), max(t.most, time>>t.shift)
	for t.most-t.least >= profile.MostIntervals {
		t.coarsen()
	}
	return time >> t.shift
}

// coarsen makes parts twice as long.
func (t *intervals) coarsen() {
	t.recent.leave(t.put)
	t.shift, t.least, t.most = t.shift+1, t.least>>1, t.most>>1
	for i := range t.list {
		t.list[i].a >>= 1
	}
}

// put adds a cell to the list.
func (t *intervals) put(c *tally) {
	if len(t.list) >= t.crowded {
		t.list = profile.Merge(t.list, func(a, b tally) int {
			return cmp.Or(cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b), cmp.Compare(a.pid, b.pid), cmp.Compare(a.region, b.region))
		}, (*tally).merge)
		t.crowded = max(crowd, 2*len(t.list))
	}
	t.list = append(t.list, *c)
}

// interval counts the access of a cell by its time.
func (w *worker) interval(c *cell, home topo.NodeID) {
	v := tally{tallyKey: tallyKey{a: w.intervals.at(c.first), b: uint64(newDoing(c.tid, c.how.cpu(), home)), pid: c.pid, region: c.region}, all: c.count}
	if c.how.level() == profile.DRAM {
		v.some = c.count
	}
	w.intervals.recent.add(&v, w.intervals.put)
}

// overTime is the intervals of the workers, in parts that are equally long and no more
// than a profile may have.
func (t *Table) overTime(workers []*worker, settled func(arena.Region) arena.Region) {
	all := &t.intervals
	for _, w := range workers {
		all.shift = max(all.shift, w.intervals.shift)
	}
	for t.r.stats.Last>>all.shift-t.r.stats.First>>all.shift >= profile.MostIntervals {
		all.shift++
	}
	for _, w := range workers {
		w.intervals.recent.leave(w.intervals.put)
		for i := range w.intervals.list {
			if c := &w.intervals.list[i]; int(c.pid) == t.PID {
				c.a >>= all.shift - w.intervals.shift
				c.region = settled(c.region)
				all.list = append(all.list, *c)
			}
		}
		w.intervals = intervals{}
	}
}

// EachInterval calls do for every part of the run in which a thread did something, in
// no particular order. Parts are of nanoseconds, from the first sample on.
func (t *Table) EachInterval(do func(v *arena.Interval)) error {
	nodes := len(t.r.opt.Machine.Nodes)
	v := arena.Interval{Shift: int(t.intervals.shift), Count: make([]uint64, nodes+1)}
	first := t.r.stats.First >> t.intervals.shift
	for i := range t.intervals.list {
		c := &t.intervals.list[i]
		thread, known := t.numbers[doing(c.b).by()]
		if !known {
			continue
		}
		at := nodes
		if v.Home = int(doing(c.b).home()); v.Home >= 0 {
			at = v.Home
		}
		v.Part, v.Thread, v.Region, v.Work = int(c.a-first), thread, c.region, c.all
		clear(v.Count)
		v.Count[at] = c.some
		do(&v)
	}
	return nil
}
