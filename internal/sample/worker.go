package sample

import (
	"numaopt/internal/arena"
	"numaopt/internal/perfdata"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// worker adds up the samples of one processor's pieces.
type worker struct {
	r     *reader
	used  map[uint32]uint64 // samples by process
	pages map[pageKey]int32
	slots []slot
	cells map[cellKey]*cell
	codes map[codeKey]arena.Region
	last  struct {
		key cellKey
		to  *cell
	}
	stats Stats
	pid   uint32 // of the space
	space *space
}

// pageKey is a page of an object of a process.
type pageKey struct {
	pid    uint32
	object int32
	number uint64
}

// slot is what is known of a page beside its counts.
type slot struct {
	pageKey
	first, firstPC uint64 // time and instruction of the earliest fault; 0 is none
	firstBy        thread
	firstCPU       uint32
	firstRegion    arena.Region
	votes          [maxNodes]uint32 // of samples that DRAM served, for nodes by the processor's word
	homes          [maxNodes]uint32 // likewise by physical address
}

// maxNodes is how many nodes of a machine are told apart as homes of sampled pages.
const maxNodes = 16

// cellKey is a row of the table.
type cellKey struct {
	page   int32 // slot
	tid    uint32
	cpu    uint32
	region arena.Region
}

type cell struct {
	count, latency [4][2]uint64
}

type codeKey struct {
	pid uint32
	pc  uint64
}

func newWorker(r *reader) *worker {
	return &worker{r: r, used: map[uint32]uint64{}, pages: map[pageKey]int32{}, cells: map[cellKey]*cell{}, codes: map[codeKey]arena.Region{}}
}

const (
	modeKernel = 1
	modeUser   = 2
)

// add counts one sample.
func (w *worker) add(s *perfdata.Sample) error {
	w.stats.Samples++
	e := &w.r.roles[s.Event]
	switch {
	case e.skip:
		w.stats.Samples--
		return nil
	case s.Mode != modeUser && !w.r.opt.Kernel:
		w.stats.Kernel++
		return nil
	case s.Addr == 0:
		w.stats.NoAddress++
		return nil
	}
	node := topo.Unknown
	if int(s.CPU) < len(w.r.nodeOf) {
		node = w.r.nodeOf[s.CPU]
	}
	if node == topo.Unknown || s.TID == 0 {
		w.stats.NoThread++
		return nil
	}
	w.used[s.PID]++
	if s.PID != w.pid || w.space == nil {
		w.pid, w.space = s.PID, w.r.spaces[s.PID]
	}
	w.note(s)
	page := w.page(s)
	region := w.region(s)
	w.touch(page, region, s, e, node)
	w.count(cellKey{page, s.TID, s.CPU, region}, s, e)
	return nil
}

// note remembers what kinds of samples there are, and from when to when.
func (w *worker) note(s *perfdata.Sample) {
	st := &w.stats
	st.Latencies = st.Latencies || s.Latency != 0
	st.Physical = st.Physical || s.Phys != 0
	if st.First == 0 || s.Time < st.First {
		st.First = s.Time
	}
	st.Last = max(st.Last, s.Time)
}

// page is the slot of the sample's page.
func (w *worker) page(s *perfdata.Sample) int32 {
	key := pageKey{s.PID, 0, s.Addr / units.PageSize}
	if p := w.space.at(s.Addr, s.Time); p != nil {
		key.object = p.object
	}
	i, ok := w.pages[key]
	if !ok {
		i = int32(len(w.slots))
		w.slots = append(w.slots, slot{pageKey: key})
		w.pages[key] = i
	}
	return i
}

// region is the code that the sample was made in.
func (w *worker) region(s *perfdata.Sample) arena.Region {
	if s.Mode != modeUser {
		return 0
	}
	key := codeKey{s.PID, s.IP}
	r, ok := w.codes[key]
	if !ok {
		if p := w.space.at(s.IP, s.Time); p != nil {
			r = w.r.places.region(s.PID, w.space, p.module, s.IP)
		}
		w.codes[key] = r
	}
	return r
}

// touch notes a fault that may be the page's first, and votes for its home.
func (w *worker) touch(page int32, region arena.Region, s *perfdata.Sample, e *role, node topo.NodeID) {
	p := &w.slots[page]
	if e.fault {
		w.stats.Faults = true
		if p.first == 0 || s.Time < p.first {
			p.first, p.firstPC, p.firstBy, p.firstCPU, p.firstRegion = s.Time, s.IP, thread{s.PID, s.TID}, s.CPU, region
		}
	}
	if home, ok := w.r.f.Info.Home(s.Phys); ok {
		if at := w.r.opt.Machine.ByOS(home); at >= 0 && at < maxNodes {
			p.homes[at]++
		}
	}
	if level, remote := Level(s.Source); level == profile.DRAM && e.sources {
		w.stats.Sources = true
		switch {
		case !remote && node < maxNodes:
			p.votes[node]++
		case remote && len(w.r.opt.Machine.Nodes) == 2:
			p.votes[1-node]++
		}
	}
}

// count adds the sample to its cell.
func (w *worker) count(key cellKey, s *perfdata.Sample, e *role) {
	if key != w.last.key || w.last.to == nil {
		c := w.cells[key]
		if c == nil {
			c = new(cell)
			w.cells[key] = c
		}
		w.last.key, w.last.to = key, c
	}
	n := e.period
	if n == 0 {
		n = max(1, s.Period)
	}
	level, _ := Level(s.Source)
	if e.fault || !e.sources {
		level = profile.DRAM // all that is known is that the page was touched
	}
	op := profile.Load
	if s.Source.Op()&perfdata.OpStore != 0 || s.Source.Op()&perfdata.OpLoad == 0 && e.store {
		op = profile.Store
	}
	c := w.last.to
	c.count[level][op] += n
	if op == profile.Load {
		c.latency[level][op] += s.Latency * n
	}
}

// Level is where an access was served and whether that was another node's memory
// or cache.
func Level(d perfdata.DataSrc) (level profile.Level, remote bool) {
	remote = d.Remote() || d.Level()&(perfdata.LevelRemRAM1|perfdata.LevelRemRAM2|perfdata.LevelRemCache1|perfdata.LevelRemCache2) != 0
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
	l := d.Level()
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
