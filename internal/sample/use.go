package sample

import (
	"numaopt/internal/arena"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// A use is a tally of an instruction's accesses to DRAM: a is its address, b has what it
// accesses. Some of the accesses have a latency.
//
// use is an object, or (negative) a part of the memory that is no object's, in bits
// 32-63, the operation in bit 8, and in bits 0-1 whether the memory was the CPU's own
// node's, as far as the sample itself tells: the home of the page, which other samples
// may tell, is not asked.
type use uint64

const (
	unknown = iota
	local
	remote
)

func newUse(object int32, op profile.Op, where use) use {
	return use(uint32(object))<<32 | use(op)<<8 | where
}

func (u use) object() int32 { return int32(u >> 32) }
func (u use) op() int       { return int(u >> 8 & 1) }
func (u use) where() int    { return int(u & 3) }

// memory is the node of the memory that an access went to, and whether it was local.
func (w *worker) memory(c *cell) (home topo.NodeID, where use) {
	from, nodes := w.r.nodeOf[c.how.cpu()], len(w.r.opt.Machine.Nodes)
	home = topo.NodeID(c.how.home())
	switch {
	case home == topo.Unknown && !c.how.said():
		return home, unknown
	case home == topo.Unknown && !c.how.remote():
		home = from
	case home == topo.Unknown && nodes == 2:
		home = 1 - from
	}
	if home == from {
		return home, local
	}
	return home, remote
}

// use counts the access of a cell to DRAM by its instruction.
func (w *worker) use(c *cell, ip uint64, where use) {
	object := c.object
	if object == 0 {
		object = w.part(c.number)
	}
	u := tally{tallyKey: tallyKey{a: ip, b: uint64(newUse(object, c.how.op(), where)), pid: c.pid, region: c.region}, all: c.count, cycles: c.latency, first: c.first}
	if c.latency > 0 {
		u.some = c.count
	}
	w.uses.add(&u)
}

// EachUse calls do for every use of an instruction, in no particular order.
func (t *Table) EachUse(do func(u *arena.Use)) error {
	parts := t.r.partsOf(uint32(t.PID))
	t.uses.each(func(c *tally) {
		what := use(c.b)
		u := arena.Use{Code: arena.Code{Module: -1}, Owner: arena.Owner(max(0, what.object())), Region: c.region, Op: what.op(), Latency: c.cycles, Loads: c.some}
		if what.object() <= 0 {
			u.Page = parts.page(what.object())
		}
		if at := t.space.at(c.a, c.first); at != nil && at.module >= 0 {
			u.Code = arena.Code{VAddr: c.a - t.space.modules[at.module].Base, Module: int(at.module)}
		}
		*[...]*uint64{unknown: &u.Unknown, local: &u.Local, remote: &u.Remote}[what.where()] = c.all
		do(&u)
	})
	return nil
}
