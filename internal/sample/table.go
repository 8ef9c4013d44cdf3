package sample

import (
	"cmp"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/topo"
)

// Table is what was sampled of one process, in the terms of an arena.
type Table struct {
	PID     int
	Command string // the name of its main thread

	r        *reader
	space    *space
	pages    map[pageKey]int
	slots    []slot
	cells    map[cellKey]*cell
	rows     []row
	threads  []arena.Thread
	numbers  map[threadCPU]int
	accesses uint64
}

// threadCPU is a thread on a CPU.
type threadCPU struct{ tid, cpu uint32 }

func newTable(r *reader, pid uint32) *Table {
	s := r.spaces[pid]
	if s == nil {
		s = newSpace(nil)
	}
	return &Table{PID: int(pid), Command: r.names[pid], r: r, space: s, pages: map[pageKey]int{}, cells: map[cellKey]*cell{}, numbers: map[threadCPU]int{}}
}

// take adds what a worker counted of the process.
func (t *Table) take(w *worker, pid uint32) {
	s := &t.r.stats
	s.Samples += w.stats.Samples
	s.Kernel += w.stats.Kernel
	s.NoAddress += w.stats.NoAddress
	s.NoThread += w.stats.NoThread
	s.Latencies = s.Latencies || w.stats.Latencies
	s.Sources = s.Sources || w.stats.Sources
	s.Physical = s.Physical || w.stats.Physical
	s.Faults = s.Faults || w.stats.Faults
	if w.stats.Last != 0 {
		if s.First == 0 || w.stats.First < s.First {
			s.First = w.stats.First
		}
		s.Last = max(s.Last, w.stats.Last)
	}
	for id, n := range w.used {
		if id == pid {
			s.Used += n
		} else {
			s.Elsewhere += n
		}
	}
	number := make([]int32, len(w.slots))
	for i := range w.slots {
		number[i] = -1
		if p := &w.slots[i]; p.pid == pid {
			number[i] = int32(t.page(p))
		}
	}
	for key, c := range w.cells {
		if key.page = number[key.page]; key.page < 0 {
			continue
		}
		sum := t.cells[key]
		if sum == nil {
			sum = new(cell)
			t.cells[key] = sum
		}
		for level := range c.count {
			for op, n := range c.count[level] {
				sum.count[level][op] += n
				sum.latency[level][op] += c.latency[level][op]
				t.accesses += n
			}
		}
	}
	w.cells, w.pages, w.slots = nil, nil, nil
}

// page is the number of a worker's page here, with its votes added.
func (t *Table) page(p *slot) int {
	i, ok := t.pages[p.pageKey]
	if !ok {
		i = len(t.slots)
		t.pages[p.pageKey] = i
		t.slots = append(t.slots, *p)
		return i
	}
	mine := &t.slots[i]
	if p.first != 0 && (mine.first == 0 || p.first < mine.first) {
		mine.first, mine.firstPC, mine.firstBy, mine.firstCPU, mine.firstRegion = p.first, p.firstPC, p.firstBy, p.firstCPU, p.firstRegion
	}
	for n := range p.votes {
		mine.votes[n] += p.votes[n]
		mine.homes[n] += p.homes[n]
	}
	return i
}

// finish puts pages in the order of objects and addresses, whichever worker met
// them first, and numbers the threads.
func (t *Table) finish() {
	order := make([]int, len(t.slots))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &t.slots[a], &t.slots[b]
		return cmp.Or(cmp.Compare(x.object, y.object), cmp.Compare(x.number, y.number))
	})
	slots, number := make([]slot, len(order)), make([]int32, len(order))
	for to, from := range order {
		slots[to], number[from] = t.slots[from], int32(to)
	}
	t.slots, t.pages = slots, nil
	t.rows = make([]row, 0, len(t.cells))
	for key, c := range t.cells {
		key.page = number[key.page]
		t.rows = append(t.rows, row{key, *c})
	}
	t.cells = nil
	code := func(r arena.Region) (kind, module int, vaddr uint64) {
		if n, ok := r.Loop(); ok {
			l := &t.r.places.loops[n]
			return 1, l.Module, l.VAddr
		}
		n, _ := r.Function()
		return 0, t.r.places.funcs[n].Module, t.r.places.funcs[n].VAddr
	}
	slices.SortFunc(t.rows, func(a, b row) int {
		if c := cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.tid, b.tid), cmp.Compare(a.cpu, b.cpu)); c != 0 {
			return c
		}
		k1, m1, v1 := code(a.region)
		k2, m2, v2 := code(b.region)
		return cmp.Or(cmp.Compare(k1, k2), cmp.Compare(m1, m2), cmp.Compare(v1, v2))
	})
	t.number()
}

// row is a cell that has its place.
type row struct {
	cellKey
	cell
}

// number numbers threads: the main thread is rank 0, the others follow as they
// were made, or by their ids where perf was not there to see it.
func (t *Table) number() {
	seen := map[threadCPU]bool{}
	for i := range t.rows {
		seen[threadCPU{t.rows[i].tid, t.rows[i].cpu}] = true
	}
	for i := range t.slots {
		if p := &t.slots[i]; p.first != 0 {
			seen[threadCPU{p.firstBy.tid, p.firstCPU}] = true
		}
	}
	all := make([]threadCPU, 0, len(seen))
	for k := range seen {
		all = append(all, k)
	}
	born := func(k threadCPU) uint64 { return t.r.born[thread{uint32(t.PID), k.tid}] }
	slices.SortFunc(all, func(a, b threadCPU) int {
		main := func(k threadCPU) int {
			if int(k.tid) == t.PID {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(main(a), main(b)), cmp.Compare(born(a), born(b)), cmp.Compare(a.tid, b.tid), cmp.Compare(a.cpu, b.cpu))
	})
	rank := -1
	for i, k := range all {
		if i == 0 || all[i-1].tid != k.tid {
			rank++
		}
		t.numbers[k] = i
		t.threads = append(t.threads, arena.Thread{Rank: rank, CPU: int(k.cpu), Node: int(t.r.nodeOf[k.cpu])})
	}
}

// Modules, Funcs and the others are what package ingest asks an arena for.
func (t *Table) Modules() ([]arena.Module, error) { return t.space.modules, nil }

// Funcs returns the functions that samples were made in.
func (t *Table) Funcs() ([]arena.Code, error) { return t.r.places.funcs, nil }

// Loops returns the bodies of parallel loops, likewise.
func (t *Table) Loops() ([]arena.Loop, error) { return t.r.places.loops, nil }

// Starts returns nothing: perf does not know what threads began with.
func (t *Table) Starts() ([]arena.Code, error) { return make([]arena.Code, 1), nil }

// Sites returns nothing: perf knows of no allocations.
func (t *Table) Sites() ([][]uint64, error) { return make([][]uint64, 1), nil }

// Notes returns nothing.
func (t *Table) Notes() ([]arena.Note, error) { return nil, nil }

// Objects returns the mappings that are no file's.
func (t *Table) Objects() ([]arena.Object, error) { return t.space.objects, nil }

// Threads returns the threads, each once for every CPU that it was seen on.
func (t *Table) Threads() ([]arena.Thread, error) { return t.threads, nil }

// NumPages is one more than the highest page record.
func (t *Table) NumPages() int { return len(t.slots) + 1 }

// EachPage calls do for every page; records count from 1.
func (t *Table) EachPage(do func(i int, p arena.Page)) error {
	for i := range t.slots {
		s := &t.slots[i]
		p := arena.Page{Number: s.number, Object: int(s.object), Home: t.home(s), Thread: -1, Region: 0, Module: -1}
		if s.first != 0 {
			p.Thread, p.Region = t.numbers[threadCPU{s.firstBy.tid, s.firstCPU}], s.firstRegion
			_, loop := s.firstRegion.Loop()
			p.Serial = !loop && s.firstBy.tid == uint32(t.PID)
			if at := t.space.at(s.firstPC, s.first); at != nil && at.module >= 0 {
				p.Module, p.PC = int(at.module), s.firstPC-t.space.modules[at.module].Base
			}
		}
		do(i+1, p)
	}
	return nil
}

// home is the node that holds a page: by physical addresses, else by what the
// processor said, else where its first fault was; -1 for none of them.
func (t *Table) home(s *slot) int {
	physical, said := most(s.homes), most(s.votes)
	switch {
	case physical >= 0:
		if said >= 0 && said != physical {
			t.r.stats.Disagree++
		}
		return physical
	case said >= 0:
		return said
	case s.first != 0:
		return int(t.r.nodeOf[s.firstCPU])
	}
	return int(topo.Unknown)
}

// most is the node with the most votes; -1 for no votes.
func most(votes [maxNodes]uint32) int {
	best := -1
	for n, v := range votes {
		if v > 0 && (best < 0 || v > votes[best]) {
			best = n
		}
	}
	return best
}

// EachBlock calls do for every cell.
func (t *Table) EachBlock(do func(b *arena.Block)) error {
	for i := range t.rows {
		w := &t.rows[i]
		do(&arena.Block{Page: int(w.page) + 1, Thread: t.numbers[threadCPU{w.tid, w.cpu}], Region: w.region,
			Count: w.count, Latency: w.latency, First: 1})
	}
	return nil
}

// EachSmall calls do for nothing: perf knows of no allocations.
func (t *Table) EachSmall(func(arena.SmallVote)) error { return nil }
