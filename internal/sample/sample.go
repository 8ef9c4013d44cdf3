// Package sample adds up the samples of a recording: who touched which page from
// where, what served it, how long it took.
//
// # Input
//
// A recording (perfdata) and the machine that it was made on.
//
// # Output
//
// A Table of the process with the most samples, in the terms in which an arena
// tells of an emulated process, and Stats: every sample is in the table or counted
// by the reason why it is not.
//
// # Method
//
// Mappings are collected first and form an address space over time (space.go).
// Then every processor adds up the samples of the pieces that it decodes, in a
// table that all share, which is divided by pages (cells.go); what a sample's address
// was is looked up by its time, so that no order of samples is needed, and none is
// ever held. Each part of the table is sorted (portion.go), and its pages get homes:
// from physical addresses where samples have them, else from what the processor said of
// local and remote memory. Beside the table latencies are counted by duration
// (latency.go), the cache lines that nodes share (line.go), the instructions that access
// DRAM (use.go), and what threads did in each part of the run (interval.go).
//
// # Limits
//
// perf tells of no munmap: an address belongs to the latest mapping made there.
// Memory grows with pages × threads × code that met, and with page faults, of which each
// is held: their order says which of them moved a page, and they are few. Of the lines the hottest are kept,
// and what is missing of each at its beginning depends on how many processors read.
// An instruction is the one that the sample names: of events that are not precise one
// that comes soon after. Whether its access was local, and which node's memory an interval
// is of, is what the sample itself says, which on more than two nodes without physical
// addresses is only that it was remote.
package sample

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"numaopt/internal/perfdata"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// Options say how to read a recording.
type Options struct {
	Machine topo.Topology
	PID     int  // 0: the process with the most samples
	Program int  // not 0: only of this process, as of its first exec, and of those that descend from it
	Kernel  bool // count accesses by the kernel, too
	Workers int  // 0: as many as there are processors
	Symbols *symbol.Table
	// Log is the name of the runtime's logs without their process ids; "" is none.
	Log string
}

// Stats says where samples went.
type Stats struct {
	Samples     uint64 // read
	Used        uint64 // in the table
	Elsewhere   uint64 // of other processes
	Kernel      uint64 // made by the kernel, and not asked for
	NoAddress   uint64 // without a data address
	Fetches     uint64 // page faults on the code that was to run, which is no access to data
	NoThread    uint64 // without thread or CPU, or of a CPU that the machine does not have
	Damaged     uint64
	Lost        uint64 // by the kernel: no room in its buffer
	Throttled   uint64 // times that the kernel stopped an event
	Processes   int    // with samples
	Latencies   bool   // some have a latency
	Sources     bool   // some say what served them
	Physical    bool   // some have a physical address
	Faults      bool   // some are page faults
	Others      string // the busiest of the other processes
	Running     string // processes forked by the table's, or itself, that had not ended
	Disagree    uint64 // pages where physical address, kernel and processor disagree on the node
	Own         uint64 // made by numaopt's runtime
	LogLost     uint64 // records that found no room in the runtime's log
	LogEnd      string // why
	SmallLost   uint64 // small allocations on pages that the log had no room for
	NoLog       string // why a log was not read
	Moved       uint64 // pages that were on several nodes, one after the other
	First, Last uint64 // ns by the file's clock
}

// Read adds up the samples of f.
func Read(f *perfdata.File, opt Options) (*Table, *Stats, error) {
	if err := usable(f); err != nil {
		return nil, nil, err
	}
	r := &reader{f: f, opt: opt, places: newPlaces(opt.Symbols), parts: map[uint32]*parts{}, cells: new(cells)}
	if err := r.side(); err != nil {
		return nil, nil, err
	}
	r.blocks()
	var workers []*worker
	err := f.Samples(opt.Workers, func(int) func(*perfdata.Sample) error {
		w := newWorker(r)
		workers = append(workers, w)
		return w.add
	})
	if err != nil {
		return nil, nil, err
	}
	return r.merge(workers)
}

// usable is an error for a recording without data addresses, which says how to
// make one with them.
func usable(f *perfdata.File) error {
	addresses := false
	for i := range f.Events {
		has := f.Events[i].Has()
		addresses = addresses || has.Addr
		if has.Addr && (!has.Thread || !has.CPU) {
			return fmt.Errorf("%s: the samples of %s do not say on which CPU they were made: record with --sample-cpu (perf mem record does)", f.Path, name(&f.Events[i]))
		}
	}
	if !addresses && !f.Traced() {
		return fmt.Errorf("%s: no data addresses in this file: it was recorded without -d; use perf mem record, or perf record -d --sample-cpu with an event that has addresses", f.Path)
	}
	return nil
}

func name(e *perfdata.Event) string {
	if e.Name == "" {
		return "its event"
	}
	return e.Name
}

// reader is what the workers share.
type reader struct {
	f      *perfdata.File
	opt    Options
	stats  Stats
	spaces map[uint32]*space // by process
	names  map[uint32]string
	nodeOf []topo.NodeID // by CPU
	roles  []role        // by event
	born   map[thread]uint64
	// parents is of the processes that were forked meanwhile; running, those of them
	// that did not end meanwhile.
	parents map[uint32]uint32
	running map[uint32]bool
	kept    func(pid uint32) bool // by Options.Program
	began   uint64                // ns: when that became a program; 0 is always
	places  *places
	cells   *cells
	// homes is the nodes of blocks of 1<<blockShift bytes of physical memory, -1 for none
	homes      []int16
	blockShift int

	partsLock sync.Mutex
	parts     map[uint32]*parts // by process, see partsOf
}

// role is what the samples of an event are.
type role struct {
	skip    bool // an auxiliary event, or one without addresses
	fault   bool
	store   bool   // where DATA_SRC does not say
	period  uint64 // 0: each sample says
	sources bool
}

type thread struct{ pid, tid uint32 }

// side collects what is no sample.
func (r *reader) side() error {
	r.spaces, r.names, r.born = map[uint32]*space{}, map[uint32]string{}, map[thread]uint64{}
	r.parents = map[uint32]uint32{}
	mapped := map[uint32][]*perfdata.Mmap{}
	ended, execed := map[uint32]bool{}, map[uint32]bool{}
	heirs := map[uint32]uint32{}
	var records, samples uint64 // lost
	if err := r.f.Side(func(s perfdata.Side) error {
		switch s := s.(type) {
		case *perfdata.Mmap:
			mapped[s.PID] = append(mapped[s.PID], s)
		case *perfdata.Comm:
			if s.PID == s.TID {
				r.names[s.PID] = s.Name
			}
			if s.Exec && int(s.PID) == r.opt.Program && (r.began == 0 || s.Time < r.began) {
				r.began = s.Time
			}
			execed[s.PID] = execed[s.PID] || s.Exec
		case *perfdata.Task:
			if s.Exit {
				ended[s.PID] = ended[s.PID] || s.PID == s.TID
				break
			}
			r.born[thread{s.PID, s.TID}] = s.Time
			if s.PID != s.Parent {
				r.parents[s.PID] = s.Parent
			}
		case *perfdata.Lost:
			if s.Samples {
				samples += s.Count
			} else {
				records += s.Count
			}
		case *perfdata.Throttle:
			if s.On {
				r.stats.Throttled++
			}
		case *perfdata.Aux:
			if s.Truncated {
				records++
			}
		}
		return nil
	}); err != nil {
		return err
	}
	r.stats.Lost = max(records, samples) // perf from 6.1 on tells of the same losses twice
	r.kept = descend(r.opt.Program, r.parents)
	if program := uint32(r.opt.Program); r.began != 0 { // it had other memory before
		mapped[program] = slices.DeleteFunc(mapped[program], func(m *perfdata.Mmap) bool { return m.Time < r.began })
	}
	r.running = map[uint32]bool{}
	own := maps.Clone(mapped)
	for pid, parent := range r.parents {
		if !execed[pid] {
			heirs[pid] = parent
		}
		r.running[pid] = !ended[pid]
		r.names[pid] = r.named(pid, r.parents)
		mapped[pid] = append(inherited(pid, own, r.parents), own[pid]...)
	}
	histories, err := r.logs(slices.Sorted(maps.Keys(mapped)), heirs)
	if err != nil {
		return err
	}
	for _, pid := range slices.Sorted(maps.Keys(mapped)) {
		s := newSpace(mapped[pid], histories[pid])
		r.stats.NoLog = cmp.Or(r.stats.NoLog, r.missing(pid, s))
		if r.spaces[pid] = s; s.log != nil {
			s.firstLoop = r.places.logged(pid, s)
		}
	}
	for i, n := range r.opt.Machine.Nodes {
		for _, c := range n.CPUs {
			for len(r.nodeOf) <= c {
				r.nodeOf = append(r.nodeOf, topo.Unknown)
			}
			r.nodeOf[c] = topo.NodeID(i)
		}
	}
	for i := range r.f.Events {
		r.roles = append(r.roles, roleOf(&r.f.Events[i], r.f.Traced()))
	}
	return nil
}

// inherited is the mappings that a forked process began with: its ancestors'.
func inherited(pid uint32, maps map[uint32][]*perfdata.Mmap, children map[uint32]uint32) []*perfdata.Mmap {
	var out []*perfdata.Mmap
	for depth := 0; depth < 64; depth++ {
		parent, ok := children[pid]
		if !ok || parent == pid {
			break
		}
		out = append(slices.Clone(maps[parent]), out...)
		pid = parent
	}
	return out
}

// named is a process's name: a fork has that of the process it came from until it
// becomes another program, and perf tells of the latter only.
func (r *reader) named(pid uint32, parents map[uint32]uint32) string {
	for depth := 0; depth < 64; depth++ {
		parent, ok := parents[pid]
		if r.names[pid] != "" || !ok || parent == pid {
			break
		}
		pid = parent
	}
	return r.names[pid]
}

// descend says which processes are the program or descend from it; all do from 0.
func descend(program int, parents map[uint32]uint32) func(uint32) bool {
	return func(pid uint32) bool {
		for depth := 0; program != 0 && pid != uint32(program) && depth < 64; depth++ {
			next, ok := parents[pid]
			if !ok || next == pid {
				return false
			}
			pid = next
		}
		return program == 0 || pid == uint32(program)
	}
}

const (
	typeSoftware    = 1
	pageFaults      = 2 // PERF_COUNT_SW_PAGE_FAULTS
	pageFaultsMinor = 5
	pageFaultsMajor = 6
)

func roleOf(e *perfdata.Event, traced bool) role {
	has := e.Has()
	r := role{skip: !has.Addr && !traced, sources: has.Source}
	r.fault = e.Attr.Type == typeSoftware && (e.Attr.Config == pageFaults || e.Attr.Config == pageFaultsMinor || e.Attr.Config == pageFaultsMajor)
	r.store = storeName.MatchString(e.Name)
	if auxName.MatchString(e.Name) {
		r.skip = true
	}
	if !has.Period {
		r.period = 1
		if !e.Attr.Freq() {
			r.period = max(1, e.Attr.Period)
		}
	}
	return r
}

// ErrNoSamples is a recording of nothing.
var ErrNoSamples = errors.New("there are no samples in it")

// merge makes one table of those of the workers.
func (r *reader) merge(workers []*worker) (*Table, *Stats, error) {
	pid, err := r.choose(workers)
	if err != nil {
		return nil, nil, err
	}
	r.sum(workers, pid)
	r.stats.Running = r.outlived(pid)
	t := newTable(r, pid, workers)
	r.stats.Damaged = r.f.Damaged
	if r.stats.Samples == 0 {
		return nil, &r.stats, fmt.Errorf("%s: %w: nothing that its events count happened while it was recorded", r.f.Path, ErrNoSamples)
	}
	if r.stats.Used == 0 {
		return nil, &r.stats, fmt.Errorf("%s: no sample of %d can be used: %s", r.f.Path, r.stats.Samples, r.stats.why())
	}
	return t, &r.stats, nil
}

// why names the commonest reason that samples are not in the table.
func (s *Stats) why() string {
	reasons := []struct {
		n    uint64
		text string
	}{
		{s.NoAddress, "they have no data address: record with -d, and an event that has addresses"},
		{s.Kernel, "they were made in the kernel"},
		{s.Fetches, "they are of code, not of data"},
		{s.NoThread, "they do not say thread or CPU, or a CPU that the machine does not have"},
		{s.Elsewhere, "they are of other processes"},
		{s.Damaged, "they are damaged"},
	}
	most := slices.MaxFunc(reasons, func(a, b struct {
		n    uint64
		text string
	}) int {
		return cmp.Compare(a.n, b.n)
	})
	return most.text
}

// choose is the process that the table is of.
func (r *reader) choose(workers []*worker) (uint32, error) {
	counts := map[uint32]uint64{}
	for _, w := range workers {
		for pid, p := range w.processes {
			if r.kept(pid) && p.used > 0 {
				counts[pid] += p.used
			}
		}
	}
	pids := make([]uint32, 0, len(counts))
	for pid := range counts {
		pids = append(pids, pid)
	}
	slices.SortFunc(pids, func(a, b uint32) int { // of two alike the ancestor
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(r.depth(a), r.depth(b)), cmp.Compare(a, b))
	})
	r.stats.Processes = len(pids)
	if r.opt.PID != 0 {
		if counts[uint32(r.opt.PID)] == 0 {
			return 0, fmt.Errorf("%s: no samples of process %d; there are some of %s", r.f.Path, r.opt.PID, r.list(pids))
		}
		return uint32(r.opt.PID), nil
	}
	if len(pids) == 0 {
		return 0, nil
	}
	if len(pids) > 1 {
		r.stats.Others = r.list(pids[1:])
	}
	return pids[0], nil
}

// depth is how many of a process's ancestors the recording knows.
func (r *reader) depth(pid uint32) int {
	for depth := 0; ; depth++ {
		parent, ok := r.parents[pid]
		if !ok || parent == pid || depth == 64 {
			return depth
		}
		pid = parent
	}
}

// outlived names pid and the processes that it forked, those of them that ran when the
// recording ended. Where it is not whole, their end may be what it lacks.
func (r *reader) outlived(pid uint32) string {
	if r.f.Cut || r.stats.Lost > 0 {
		return ""
	}
	forked := descend(int(pid), r.parents)
	var pids []uint32
	for p, running := range r.running {
		if running && (p == pid || forked(p)) {
			pids = append(pids, p)
		}
	}
	if len(pids) == 0 {
		return ""
	}
	slices.Sort(pids)
	return r.list(pids)
}

// list names processes, a few of them.
func (r *reader) list(pids []uint32) string {
	if len(pids) == 0 {
		return "none"
	}
	text := ""
	for i, pid := range pids {
		if i == 5 {
			return text + fmt.Sprintf(" and %d more", len(pids)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(pid)
		if r.names[pid] != "" {
			text += " (" + r.names[pid] + ")"
		}
	}
	return text
}

// sum adds up the workers' statistics; pid is the table's process.
func (r *reader) sum(workers []*worker, pid uint32) {
	s := &r.stats
	for _, w := range workers {
		s.Samples += w.stats.Samples
		s.Kernel += w.stats.Kernel
		s.NoAddress += w.stats.NoAddress
		s.Fetches += w.stats.Fetches
		s.NoThread += w.stats.NoThread
		s.Own += w.stats.Own
		s.Latencies = s.Latencies || w.stats.Latencies
		s.Physical = s.Physical || w.stats.Physical
		s.Faults = s.Faults || w.stats.Faults
		if w.stats.Last != 0 {
			if s.First == 0 || w.stats.First < s.First {
				s.First = w.stats.First
			}
			s.Last = max(s.Last, w.stats.Last)
		}
		for id, p := range w.processes {
			if id == pid {
				s.Used += p.used
			} else {
				s.Elsewhere += p.used
			}
		}
	}
	for i := range r.roles {
		s.Sources = s.Sources || r.roles[i].sources && !r.roles[i].skip
	}
}

// maxBlocks bounds the table of memory blocks: 2^20 of 128 MiB are 128 TiB.
const maxBlocks = 1 << 20

// blocks makes the table of the nodes of memory blocks, where their size is a power
// of two, as Linux has it.
func (r *reader) blocks() {
	info := &r.f.Info
	if info.MemoryBlock == 0 || info.MemoryBlock&(info.MemoryBlock-1) != 0 {
		return
	}
	r.blockShift = bits.TrailingZeros64(info.MemoryBlock)
	last := 0
	for _, n := range info.Memory {
		last = max(last, 64*len(n.Blocks))
	}
	for b := range min(last, maxBlocks) {
		r.homes = append(r.homes, int16(r.slowHome(uint64(b)<<r.blockShift|1)))
	}
}

// homeOf is the node of a physical address, by the recording's own map; -1 where it
// has none.
func (r *reader) homeOf(phys uint64) int {
	if b := phys >> r.blockShift; b < uint64(len(r.homes)) {
		return int(r.homes[b])
	}
	return r.slowHome(phys)
}

// far is 1 for a node other than the CPU's, 0 for its own and -1, which is not known.
func (r *reader) far(cpu uint32, home int) int {
	if home < 0 || int(r.nodeOf[cpu]) == home {
		return 0
	}
	return 1
}

func (r *reader) slowHome(phys uint64) int {
	node, ok := r.f.Info.Home(phys)
	if !ok {
		return -1
	}
	return int(r.opt.Machine.ByOS(node))
}
