package perfdata

import "math/bits"

// Info is what the header of a file tells of the recording; a stream tells it in
// records. Zero where it does not.
type Info struct {
	Host, Release, PerfVersion, Arch string
	CPU, CPUID                       string   // the processor, in words and as perf's map files name it
	CPUs                             int      // online
	Command                          []string // of perf
	Nodes                            []Node
	Memory                           []MemoryNode
	MemoryBlock                      uint64 // bytes
	ClockID                          int32  // of ClockWall
	ClockWall, ClockTime             uint64 // one moment by the wall clock and by ClockID, ns
}

// Node is a NUMA node: NUMA_TOPOLOGY.
type Node struct {
	ID    int
	Total uint64 // KiB of memory
	CPUs  string // a kernel list, as "0-3,8"
}

// MemoryNode is the blocks of physical memory that a node has: MEM_TOPOLOGY.
// Block b is in the node if bit b%64 of Blocks[b/64] is set.
type MemoryNode struct {
	ID     int
	Blocks []uint64
}

// Home is the node of a physical address; false where the file does not tell.
func (i *Info) Home(phys uint64) (int, bool) {
	if i.MemoryBlock == 0 || phys == 0 {
		return 0, false
	}
	block := phys / i.MemoryBlock
	for _, n := range i.Memory {
		if w := block / 64; w < uint64(len(n.Blocks)) && n.Blocks[w]>>(block%64)&1 != 0 {
			return n.ID, true
		}
	}
	return 0, false
}

// features reads the sections whose bits are set in the header's bitmap: a table
// of their places follows the data.
func (f *File) features(b []byte, table int) error {
	at := table
	for word := 0; word < 4; word++ {
		for set := f.order.u64(b[72+8*word:]); set != 0; set &= set - 1 {
			s, err := f.section(b, at)
			if err != nil {
				return err
			}
			f.feature(64*word+bits.TrailingZeros64(set), s)
			at += 16
		}
	}
	return nil
}

// feature reads one section. What cannot be read of it is left out: nothing in it
// is needed to read samples but the names of events, which have others to go by.
func (f *File) feature(bit int, b []byte) {
	r := reader{b: b, o: f.order}
	i := &f.Info
	switch bit {
	case featHostname:
		i.Host = r.text()
	case featOSRelease:
		i.Release = r.text()
	case featVersion:
		i.PerfVersion = r.text()
	case featArch:
		i.Arch = r.text()
	case featCPUDesc:
		i.CPU = r.text()
	case featCPUID:
		i.CPUID = r.text()
	case featNrCPUs:
		r.u32() // available
		i.CPUs = int(r.u32())
	case featCmdline:
		for n := r.count(4); n > 0; n-- {
			i.Command = append(i.Command, r.text())
		}
	case featEventDesc:
		f.eventNames(&r)
	case featNUMATopology:
		for n := r.count(20); n > 0; n-- {
			node := Node{ID: int(r.u32()), Total: r.u64()}
			r.u64() // free
			node.CPUs = r.text()
			i.Nodes = append(i.Nodes, node)
		}
	case featMemTopology:
		i.memory(&r)
	case featClockData:
		if r.u32() == 1 {
			i.ClockID, i.ClockWall, i.ClockTime = int32(r.u32()), r.u64(), r.u64()
		}
	}
}

func (i *Info) memory(r *reader) {
	if r.u64() != 1 {
		return
	}
	i.MemoryBlock = r.u64()
	for n := r.u64(); n > 0 && !r.bad; n-- {
		node := MemoryNode{ID: int(r.u64())}
		r.u64() // bits
		for words := (r.u64() + 63) / 64; words > 0 && !r.bad; words-- {
			node.Blocks = append(node.Blocks, r.u64())
		}
		i.Memory = append(i.Memory, node)
	}
}

// eventNames reads EVENT_DESC: every event once more, with its name.
func (f *File) eventNames(r *reader) {
	n, size := r.u32(), r.u32()
	for ; n > 0 && !r.bad; n-- {
		attr := r.bytes(uint64(size))
		ids := r.u32()
		name := r.text()
		var first uint64
		for k := uint32(0); k < ids && !r.bad; k++ {
			if id := r.u64(); k == 0 {
				first = id
			}
		}
		if r.bad {
			return
		}
		f.nameEvent(attr, ids > 0, first, name)
	}
}

// nameEvent gives a name to the event that has the id or, where events have no
// ids, the same attr.
func (f *File) nameEvent(attr []byte, hasID bool, id uint64, name string) {
	a, err := parseAttr(attr, f.order)
	for i := range f.Events {
		e := &f.Events[i]
		if e.Name != "" {
			continue
		}
		if hasID && len(e.IDs) > 0 {
			for _, have := range e.IDs {
				if have == id {
					e.Name = name
					return
				}
			}
			continue
		}
		if err == nil && a == e.Attr {
			e.Name = name
			return
		}
	}
}

// reader reads a section field by field; bad once it was too short.
type reader struct {
	b   []byte
	o   order
	bad bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return r.o.u32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return r.o.u64(b)
	}
	return 0
}

// count is a number of things of at least size bytes each.
func (r *reader) count(size int) uint32 {
	n := r.u32()
	if uint64(n)*uint64(size) > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return n
}

// text is a string with its padded length before it.
func (r *reader) text() string { return zeroEnded(r.bytes(uint64(r.u32()))) }

func zeroEnded(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
