package sample

import (
	"cmp"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/eventlog"
	"numaopt/internal/perfdata"
)

// space is the address space of a process over time: what was mapped at an
// address when.
type space struct {
	spans   []span
	starts  []uint64  // of the pieces between all ends of spans, ascending
	pieces  [][]int32 // the spans that cover each, by time
	modules []arena.Module
	objects []arena.Object // number 0 is none
	log     *eventlog.History
	heap    *lifetimes // the log's objects; nil without a log
	// firstLoop is added to the log's numbers of loops
	firstLoop int
	logAt     [2]uint64 // where the process has mapped its log
	runtime   [2]uint64 // and the runtime's code

	anonymous []span // the latest of those that began at the same address, in order
}

// span is one mapping.
type span struct {
	lo, hi uint64
	from   uint64 // ns
	object int32  // 0 for a file's
	module int32  // -1 for none
}

func newSpace(maps []*perfdata.Mmap, log *eventlog.History) *space {
	s := &space{objects: make([]arena.Object, 1), log: log}
	if log != nil {
		s.heap = newLifetimes(log.Objects)
		for _, o := range log.Objects[1:] {
			s.objects = append(s.objects, o.Object)
		}
	}
	maps = slices.Clone(maps)
	slices.SortStableFunc(maps, func(a, b *perfdata.Mmap) int { return cmp.Compare(a.Time, b.Time) })
	s.files(maps)
	for _, m := range maps {
		if m.Len == 0 || m.Addr+m.Len < m.Addr {
			continue
		}
		if log != nil && m.Name == log.Path {
			s.logAt = [2]uint64{m.Addr, m.Addr + m.Len}
		}
		if module := s.moduleOf(m); module >= 0 {
			s.spans = append(s.spans, span{lo: m.Addr, hi: m.Addr + m.Len, from: m.Time, module: module})
			continue
		}
		parts := s.fresh(m)
		object := s.object(m, parts[0].lo, parts[len(parts)-1].hi)
		for _, p := range parts {
			p.object = object
			s.spans = append(s.spans, p)
		}
	}
	s.cut()
	s.runtime = s.runtimeAt()
	if log != nil {
		s.markFiles()
	}
	return s
}

// markFiles marks the log's mappings that are of files.
func (s *space) markFiles() {
	for i, o := range s.log.Objects {
		if m := s.at(o.Addr, o.From); o.Kind == arena.KindMapping && m != nil && s.objects[m.object].File {
			s.objects[i].File = true
		}
	}
}

// objectAt is the object at an address at a time, 0 for none; f remembers earlier
// answers, *piece likewise.
func (s *space) objectAt(addr, time uint64, f *finder, piece *int) int32 {
	if s == nil {
		return 0
	}
	if s.heap != nil {
		if o := f.find(addr, time); o != 0 {
			return o
		}
	}
	if p := s.near(addr, time, piece); p != nil {
		return p.object
	}
	return 0
}

// cut makes the pieces.
func (s *space) cut() {
	var ends []uint64
	for _, p := range s.spans {
		ends = append(ends, p.lo, p.hi)
	}
	slices.Sort(ends)
	s.starts = slices.Compact(ends)
	s.pieces = make([][]int32, len(s.starts))
	for i, p := range s.spans {
		at, _ := slices.BinarySearch(s.starts, p.lo)
		for ; at < len(s.starts) && s.starts[at] < p.hi; at++ {
			s.pieces[at] = append(s.pieces[at], int32(i))
		}
	}
}

// at finds what was mapped at an address at a time: the latest mapping that was
// there by then, or the first where none was (perf starts late); nil for none.
func (s *space) at(addr, time uint64) *span {
	if s == nil {
		return nil
	}
	i, found := slices.BinarySearch(s.starts, addr)
	if !found {
		i--
	}
	return s.in(i, time)
}

// in is what was mapped in piece i at a time.
func (s *space) in(i int, time uint64) *span {
	if i < 0 || i >= len(s.pieces) || len(s.pieces[i]) == 0 {
		return nil
	}
	piece := s.pieces[i]
	n := len(piece) - 1
	for n > 0 && s.spans[piece[n]].from > time {
		n--
	}
	return &s.spans[piece[n]]
}

// near is at for a reader whose addresses are often close to each other: *piece is
// where the last one was found.
func (s *space) near(addr, time uint64, piece *int) *span {
	if s == nil {
		return nil
	}
	i := *piece
	if i >= len(s.starts) || addr < s.starts[i] || i+1 < len(s.starts) && addr >= s.starts[i+1] {
		var found bool
		if i, found = slices.BinarySearch(s.starts, addr); !found {
			i--
		}
		*piece = max(i, 0)
	}
	return s.in(i, time)
}

// files makes a module of every file that is mapped executable.
func (s *space) files(maps []*perfdata.Mmap) {
	for _, m := range maps {
		if !m.Executable || !isFile(m.Name) || s.module(m.Name, m.Addr) >= 0 {
			continue
		}
		base := loadBias(m.Name, m.Addr, m.Offset)
		lo, hi := m.Addr, m.Addr+m.Len
		for _, o := range maps { // its other segments lie around it
			if o.Name == m.Name && o.Addr >= base && o.Addr < m.Addr+1<<31 {
				lo, hi = min(lo, o.Addr), max(hi, o.Addr+o.Len)
			}
		}
		s.modules = append(s.modules, arena.Module{Lo: lo, Hi: hi, Base: base, Path: m.Name})
	}
}

// module is the number of the module of that path around addr; -1 for none.
func (s *space) module(path string, addr uint64) int32 {
	for i := len(s.modules) - 1; i >= 0; i-- {
		m := &s.modules[i]
		if m.Path == path && addr >= m.Base && addr < m.Hi+1<<31 {
			return int32(i)
		}
	}
	return -1
}

// moduleOf is the module that a mapping is a segment of. The .bss is memory without
// a file behind the last segment: it has no name, and follows it at once.
func (s *space) moduleOf(m *perfdata.Mmap) int32 {
	if isFile(m.Name) {
		return s.module(m.Name, m.Addr)
	}
	if m.Name != anonymous {
		return -1
	}
	for i := range s.modules {
		if bss := &s.modules[i]; m.Addr >= bss.Lo && m.Addr <= bss.Hi && m.Addr+m.Len > bss.Hi && m.Len <= bssOf(bss.Path, bss.Base, m.Addr) {
			bss.Hi = m.Addr + m.Len
			return int32(i)
		}
	}
	return -1
}

const anonymous = "//anon"

// isFile reports whether the name of a mapping is that of a file on disk.
func isFile(name string) bool {
	return len(name) > 0 && name[0] == '/' && name != anonymous && !deviceName.MatchString(name)
}

// object is the object of a mapping that is no module's, of what of it is in [lo, hi).
// With a log, memory without a file has the log's objects, or is none.
func (s *space) object(m *perfdata.Mmap, lo, hi uint64) int32 {
	if s.log != nil && !isFile(m.Name) {
		return 0
	}
	if have := s.grown(m); have > 0 {
		return have
	}
	o := arena.Object{Addr: lo, Bytes: hi - lo, Kind: arena.KindMapping, Ordinal: len(s.objects) - 1, File: isFile(m.Name)}
	o.Name = mappingName(m, o.Bytes, o.Ordinal)
	if m.Name == "[stack]" {
		o.Kind = arena.KindStack
	}
	s.objects = append(s.objects, o)
	return int32(len(s.objects) - 1)
}
