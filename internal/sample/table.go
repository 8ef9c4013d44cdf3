package sample

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
)

// Table is what was sampled of one process, in the terms of an arena.
type Table struct {
	PID     int
	Command string // the name of its main thread; "process 7" where that is not known

	r        *reader
	space    *space
	pages    []page // by object and number
	blocks   int    // at most how many there are
	threads  []arena.Thread
	numbers  map[threadCPU]int
	near     [256]threadNumber // of numbers, the latest
	asked    map[homeKey]int8  // homes that the runtime asked the kernel for
	accesses uint64
	looks    looks // of page faults
	again    int   // pages with several

	latencies []latencyCell
	uses      tallies
	intervals intervals
	lines     []*sharedLine
}

// page is one page of one object, with its cells.
type page struct {
	object int32
	number uint64
	cells  []cell // in order, see sorter
	home   int
	fault  *fault  // its first; nil is not known
	late   []fault // those that found it here, and moved it away
}

// threadCPU is a thread on a CPU.
type threadCPU struct{ tid, cpu uint32 }

func (k threadCPU) place() uint32 { return (k.tid ^ k.cpu<<4) & 255 }

// threadNumber is the number of a thread on a CPU.
type threadNumber struct {
	threadCPU
	number int
}

// numberOf is t.numbers, which it asks only where it has not just answered.
func (t *Table) numberOf(tid, cpu uint32) int {
	k := threadCPU{tid, cpu}
	n := &t.near[k.place()]
	if n.threadCPU != k {
		*n = threadNumber{k, t.numbers[k]}
	}
	return n.number
}

// newTable adds up what the workers counted of the process.
func newTable(r *reader, pid uint32, workers []*worker) *Table {
	t := &Table{PID: int(pid), Command: r.names[pid], r: r, space: r.spaces[pid], numbers: map[threadCPU]int{}, looks: looks{}}
	if t.space == nil {
		t.space = newSpace(nil, nil)
	}
	if t.Command == "" {
		t.Command = fmt.Sprint("process ", pid)
	}
	settled := r.places.settle(pid)
	faults := faultsOf(workers, pid, settled)
	t.asked = t.space.asked()
	for _, w := range workers {
		if p := w.processes[pid]; p != nil {
			t.looks.addAll(p.looks)
		}
	}
	portions := t.divided(workers, settled, faults)
	t.number(portions, faults)
	t.latencies = t.histograms(workers, portions, settled)
	t.lines = t.sharedLines(workers, settled)
	for _, w := range workers {
		w.uses.each(func(c *tally) {
			if int(c.pid) == t.PID {
				c.region = settled(c.region)
				t.uses.add(c)
			}
		})
		w.uses = tallies{}
	}
	t.overTime(workers, settled)
	return t
}

// number numbers the threads: as the log has their ranks, the others behind those; the
// main thread is rank 0, the others follow as they were made, or by their ids where
// perf was not there to see it.
func (t *Table) number(portions []*portion, faults map[pageKey][]fault) {
	seen := map[threadCPU]bool{}
	for _, p := range portions {
		maps.Copy(seen, p.threads)
	}
	for _, list := range faults {
		seen[threadCPU{list[0].tid, list[0].cpu}] = true
	}
	all := make([]threadCPU, 0, len(seen))
	for k := range seen {
		all = append(all, k)
	}
	born := func(k threadCPU) uint64 { return t.r.born[thread{uint32(t.PID), k.tid}] }
	main := func(k threadCPU) int {
		if int(k.tid) == t.PID {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b threadCPU) int {
		return cmp.Or(cmp.Compare(main(a), main(b)), cmp.Compare(born(a), born(b)), cmp.Compare(a.tid, b.tid), cmp.Compare(a.cpu, b.cpu))
	})
	next := t.space.ranks()
	rank, pinned := 0, false
	for i, k := range all {
		if i == 0 || all[i-1].tid != k.tid {
			var known bool
			if rank, pinned, known = t.space.rankOf(t.PID, k.tid); !known {
				rank = next
				next++
			}
		}
		t.numbers[k] = i
		t.threads = append(t.threads, arena.Thread{Rank: rank, CPU: int(k.cpu), Node: int(t.r.nodeOf[k.cpu]), Pinned: pinned})
	}
}

// Accesses is what the samples of the table stand for.
func (t *Table) Accesses() uint64 { return t.accesses }

// FaultPeriod is how many page faults tell as much of the remote share as one that was
// drawn at random; 0 is not known: there are first touches only, or faults do not say
// where the page was.
func (t *Table) FaultPeriod() float64 {
	if !t.r.stats.Physical || t.again == 0 {
		return 0
	}
	return t.looks.period(t.looks.all() / t.again)
}

// DRAMPeriods is the mean number of accesses for which a sample of DRAM stands, and the
// one that equal samples which tell as much of a share would stand for: of unequal ones
// the heavy ones decide (Kish, Survey Sampling, 1965, §11.7). 0 where there are none.
func (t *Table) DRAMPeriods() (mean, even float64) {
	var samples, accesses, squares float64
	for i := range t.pages {
		for k := range t.pages[i].cells {
			c := &t.pages[i].cells[k]
			if c.how.level() != profile.DRAM {
				continue
			}
			count := float64(c.count)
			samples += float64(c.samples)
			accesses += count
			squares += count * count / float64(c.samples)
		}
	}
	if accesses == 0 {
		return 0, 0
	}
	return accesses / samples, squares / accesses
}

// Modules, Funcs and the others are what package ingest asks an arena for.
func (t *Table) Modules() ([]arena.Module, error) { return t.space.modules, nil }

// Funcs returns the functions that samples were made in.
func (t *Table) Funcs() ([]arena.Code, error) { return t.r.places.funcs, nil }

// Loops returns the bodies of parallel loops, likewise.
func (t *Table) Loops() ([]arena.Loop, error) { return t.r.places.loops, nil }

// Starts returns what threads began with, as the log has it: perf does not know.
func (t *Table) Starts() ([]arena.Code, error) {
	out := make([]arena.Code, 1)
	if log := t.space.log; log != nil {
		for _, fn := range log.Starts[1:] {
			out = append(out, t.space.codeAt(fn))
		}
	}
	return out, nil
}

// Sites returns the call stacks of allocations, likewise.
func (t *Table) Sites() ([][]uint64, error) {
	if log := t.space.log; log != nil {
		return log.Sites, nil
	}
	return make([][]uint64, 1), nil
}

// Notes returns what the runtime has to say.
func (t *Table) Notes() ([]arena.Note, error) {
	if log := t.space.log; log != nil {
		return log.Notes, nil
	}
	return nil, nil
}

// Logged reports whether the runtime wrote down what the process did.
func (t *Table) Logged() bool { return t.space.log != nil }

// Objects returns the log's objects, and the mappings of files; without a log all
// mappings that are no module's.
func (t *Table) Objects() ([]arena.Object, error) { return t.space.objects, nil }

// Threads returns the threads, each once for every CPU that it was seen on.
func (t *Table) Threads() ([]arena.Thread, error) { return t.threads, nil }

// NumPages is one more than the highest page record.
func (t *Table) NumPages() int { return len(t.pages) + 1 }

// EachPage calls do for every page; records count from 1.
func (t *Table) EachPage(do func(i int, p arena.Page)) error {
	for i := range t.pages {
		s := &t.pages[i]
		p := arena.Page{Number: s.number, Object: int(s.object), Home: s.home, Thread: -1, Module: -1}
		p.Placed = t.placed(s)
		if f := s.fault; f != nil {
			p.Thread, p.Region = t.numberOf(f.tid, f.cpu), f.region
			_, loop := f.region.Loop()
			p.Serial, p.Kernel = !loop && int(f.tid) == t.PID, f.kernel
			if at := t.space.at(f.pc, f.time); at != nil && at.module >= 0 {
				p.Module, p.PC = int(at.module), f.pc-t.space.modules[at.module].Base
			}
		}
		do(i+1, p)
	}
	return nil
}

// NumBlocks is at most how many blocks there are.
func (t *Table) NumBlocks() int { return t.blocks }

// EachBlock calls do for every page, thread, CPU and region.
func (t *Table) EachBlock(do func(b *arena.Block)) error {
	var b arena.Block
	for i := range t.pages {
		p := &t.pages[i]
		for k := 0; k < len(p.cells); {
			c := &p.cells[k]
			b = arena.Block{Page: i + 1, Thread: t.numberOf(c.tid, c.how.cpu()), Region: c.region, First: 1}
			for ; k < len(p.cells); k++ {
				d := &p.cells[k]
				if d.tid != c.tid || d.how.cpu() != c.how.cpu() || d.region != c.region {
					break
				}
				b.Count[d.how.level()][d.how.op()] += d.count
				b.Latency[d.how.level()][d.how.op()] += d.latency
			}
			do(&b)
		}
		for _, f := range p.late {
			b = arena.Block{Page: i + 1, Thread: t.numberOf(f.tid, f.cpu), Region: f.region, First: 1}
			b.Count[profile.DRAM][profile.Load] = 1
			do(&b)
		}
	}
	return nil
}

// EachSmall calls do for every page of small allocations that the log knows.
func (t *Table) EachSmall(do func(arena.SmallVote)) error {
	if log := t.space.log; log != nil {
		for _, v := range log.Small {
			do(v)
		}
	}
	return nil
}
