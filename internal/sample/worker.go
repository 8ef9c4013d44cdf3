package sample

import (
	"numaopt/internal/arena"
	"numaopt/internal/eventlog"
	"numaopt/internal/perfdata"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// worker adds up the samples of one processor's pieces.
type worker struct {
	r         *reader
	cells     *batches
	latencies latencies
	uses      tallies
	intervals intervals
	lines     lines
	faults    []fault
	processes map[uint32]*process
	finders   int // that processes have
	codes     []codeEntry
	sources   [1 << sourceBits]source
	stats     Stats

	*process // of the latest sample; nil before the first

	// Of its thread:
	tid  uint32
	life *life
	live map[thread]*life
}

// process is what a worker has of a process whose samples it met.
type process struct {
	pid   uint32
	used  uint64 // samples
	space *space
	piece int
	looks looks   // of its page faults
	heap  *finder // nil without a log, or where others have taken it

	parts    *parts // nil until they are asked for
	lastPart int32
}

// mostFinders is how many processes have finders, of 32 KiB each, at the same time.
const mostFinders = 64

// life is how far a worker has come in what the log tells of a thread.
type life struct {
	log  *eventlog.Thread // nil: it tells nothing
	near int
}

// pageKey is a page of an object of a process.
type pageKey struct {
	pid    uint32
	object int32
	number uint64
}

// fault is a page fault: the first touch of a page, or one of those that follow under
// NUMA balancing, some of which moved it to their node.
type fault struct {
	page     pageKey
	time, pc uint64
	tid, cpu uint32
	region   arena.Region
	home     int  // -1 is not known
	kernel   bool // for the program: which code of it asked is not known
}

// codeEntry remembers the region of an instruction.
type codeEntry struct {
	pc     uint64
	pid    uint32
	region arena.Region
}

// source remembers what a sample says of where it was served: there are few different
// ones, in an order that no processor can foresee.
type source struct {
	of     perfdata.DataSrc
	known  bool
	level  profile.Level
	remote bool
	served profile.Served
}

const sourceBits = 6

// codeEntries is how many instructions are remembered; a power of two.
const codeEntries = 1 << 13

func newWorker(r *reader) *worker {
	return &worker{r: r, cells: &batches{to: r.cells}, processes: map[uint32]*process{}, codes: make([]codeEntry, codeEntries), live: map[thread]*life{}}
}

// modeUser is a sample's mode in the program itself.
const modeUser = 2

// add counts one sample.
func (w *worker) add(s *perfdata.Sample) error {
	e := &w.r.roles[s.Event]
	if e.skip || s.Time < w.r.began {
		return nil
	}
	st := &w.stats
	st.Samples++
	node := topo.Unknown
	if int(s.CPU) < len(w.r.nodeOf) {
		node = w.r.nodeOf[s.CPU]
	}
	switch {
	case s.Mode != modeUser && !w.r.opt.Kernel && !e.fault: // a page that the kernel fills for the program is the program's
		st.Kernel++
		return nil
	case s.Addr == 0:
		st.NoAddress++
		return nil
	case node == topo.Unknown || s.TID == 0:
		st.NoThread++
		return nil
	case e.fault && s.Mode == modeUser && s.Addr/units.PageSize == s.IP/units.PageSize:
		st.Fetches++
		return nil
	}
	if w.process == nil || s.PID != w.pid {
		w.enter(s.PID)
	}
	if w.space.own(s.IP, s.Addr) {
		st.Own++
		return nil
	}
	w.used++
	st.Latencies = st.Latencies || s.Latency != 0
	st.Physical = st.Physical || s.Phys != 0
	st.Faults = st.Faults || e.fault
	if st.First == 0 || s.Time < st.First {
		st.First = s.Time
	}
	st.Last = max(st.Last, s.Time)
	w.count(s, e)
	return nil
}

// enter makes pid the process of the latest sample, as the worker left it.
func (w *worker) enter(pid uint32) {
	p := w.processes[pid]
	if p == nil {
		p = &process{pid: pid, space: w.r.spaces[pid], looks: looks{}}
		w.processes[pid] = p
	}
	w.process, w.life = p, nil
	if p.heap != nil || p.space == nil || p.space.heap == nil {
		return
	}
	if w.finders == mostFinders {
		w.finders = 0
		for _, other := range w.processes {
			other.heap = nil
		}
	}
	w.finders++
	p.heap = &finder{in: p.space.heap}
}

// count puts the sample in its cell.
func (w *worker) count(s *perfdata.Sample, e *role) {
	src := w.source(s.Source)
	said := e.sources && src.level == profile.DRAM
	if e.fault || !e.sources { // all that is known is that the page was touched
		src = source{level: profile.DRAM, served: served(s.Source, false)}
	}
	op := profile.Load
	if s.Source.Op()&perfdata.OpStore != 0 || s.Source.Op()&perfdata.OpLoad == 0 && e.store {
		op = profile.Store
	}
	n := e.period
	if n == 0 {
		n = max(1, s.Period)
	}
	object := w.space.objectAt(s.Addr, s.Time, w.heap, &w.piece)
	home := -1
	if s.Phys != 0 {
		home = w.r.homeOf(s.Phys)
	}
	number := s.Addr / units.PageSize
	var c cell // field by field: a literal would be made elsewhere, and copied
	c.number, c.pid, c.tid, c.object, c.region = number, s.PID, s.TID, object, w.region(s)
	c.how = newHow(s.CPU, src.level, op, src.remote, said, e.fault, home)
	c.samples, c.count, c.first = 1, n, s.Time
	if e.fault { // which of a page's faults count is known at the end: they have neither lines of source nor times
		w.looks.add(s.Time, 1, w.r.far(s.CPU, home))
		w.faults = append(w.faults, fault{pageKey{c.pid, c.object, c.number}, s.Time, s.IP, s.TID, s.CPU, c.region, home, s.Mode != modeUser})
		w.cells.add(&c)
		return
	}
	if op == profile.Load {
		c.latency = s.Latency * n
	}
	to, where := w.memory(&c)
	w.interval(&c, to)
	if src.level == profile.DRAM {
		w.use(&c, s.IP, where)
	}
	if op == profile.Load {
		w.latency(&c, s, src.served, src.remote)
	}
	w.line(&c, s, op, src.served)
	w.cells.add(&c)
}

func (w *worker) source(d perfdata.DataSrc) source {
	s := &w.sources[d*0x9e3779b97f4a7c15>>(64-sourceBits)]
	if s.of != d || !s.known {
		level, remote := Level(d)
		*s = source{d, true, level, remote, served(d, remote)}
	}
	return *s
}

// region is the code that the sample was made in: the loop that its thread was in,
// as the log has it, else the function.
func (w *worker) region(s *perfdata.Sample) arena.Region {
	start := 0
	if w.space != nil && w.space.log != nil {
		l := w.thread(s.TID)
		if l.log != nil {
			if loop := l.log.At(s.Time, &l.near); loop != 0 {
				return arena.LoopRegion(w.space.firstLoop + loop)
			}
			start = l.log.Start
		}
	}
	if s.Mode != modeUser {
		return 0
	}
	e := &w.codes[(s.IP^s.IP>>13)&(codeEntries-1)]
	if e.pc != s.IP || e.pid != s.PID {
		*e = codeEntry{pc: s.IP, pid: s.PID}
		if p := w.space.at(s.IP, s.Time); p != nil {
			e.region = w.r.places.region(s.PID, w.space, p.module, s.IP)
		}
	}
	return e.region.Of(start)
}

// thread is what is known of a thread of the present process.
func (w *worker) thread(tid uint32) *life {
	if w.life != nil && w.tid == tid {
		return w.life
	}
	key := thread{w.pid, tid}
	l := w.live[key]
	if l == nil {
		l = &life{log: w.space.log.Thread(tid)}
		w.live[key] = l
	}
	w.tid, w.life = tid, l
	return l
}

// Level is where an access was served and whether that was another node's memory
// or cache.
func Level(d perfdata.DataSrc) (level profile.Level, remote bool) {
	l := d.Level()
	remote = d.Remote() || l&(perfdata.LevelRemRAM1|perfdata.LevelRemRAM2|perfdata.LevelRemCache1|perfdata.LevelRemCache2) != 0
	switch d.LevelNum() {
	case perfdata.NumL1:
		return profile.L1, remote
	case perfdata.NumL2, perfdata.NumLFB, perfdata.NumL2MHB:
		return profile.L2, remote
	case perfdata.NumRAM, perfdata.NumPMEM, perfdata.NumCXL:
		return profile.DRAM, remote
	case perfdata.NumL3, perfdata.NumL4, perfdata.NumMSC, perfdata.NumAnyCache:
		return profile.LLC, remote
	}
	switch {
	case l&(perfdata.LevelLocalRAM|perfdata.LevelRemRAM1|perfdata.LevelRemRAM2) != 0:
		return profile.DRAM, remote
	case l&(perfdata.LevelRemCache1|perfdata.LevelRemCache2) != 0:
		return profile.LLC, remote
	case l&perfdata.LevelL3 != 0:
		if l&perfdata.LevelMiss != 0 {
			return profile.DRAM, remote
		}
		return profile.LLC, remote
	case l&(perfdata.LevelL2|perfdata.LevelLFB) != 0:
		return profile.L2, remote
	}
	return profile.L1, remote
}
