package arena

import (
	"bytes"
	"encoding/binary"
)

// Builder makes arenas in memory for tests, entry by entry, as the plugin does.
type Builder struct {
	Header Header
	data   [sections][]byte
	count  [sections]uint64
}

// NewBuilder returns a builder with the meaningless first entries in place.
func NewBuilder() *Builder {
	b := &Builder{Header: Header{Version: Version, PID: 1, Period: 1, CPUs: 2, Nodes: 2}}
	for _, s := range []Section{Text, Funcs, Loops, Starts, Sites, Frames, Objects, Pages, Blocks, Uses, Intervals} {
		b.data[s], b.count[s] = make([]byte, b.stride(s)), 1
	}
	return b
}

func (b *Builder) stride(s Section) uint64 {
	if s == Intervals {
		return entry[s] + 8*(uint64(b.Header.Nodes)+1)
	}
	return entry[s]
}

func (b *Builder) add(s Section, fields ...any) int {
	var w bytes.Buffer
	for _, f := range fields {
		binary.Write(&w, le, f) //nolint:errcheck // a buffer
	}
	w.Write(make([]byte, int(b.stride(s))-w.Len()))
	b.data[s] = append(b.data[s], w.Bytes()...)
	b.count[s]++
	return int(b.count[s]) - 1
}

func (b *Builder) text(s string) uint32 {
	at := len(b.data[Text])
	b.data[Text] = append(append(b.data[Text], s...), 0)
	b.count[Text] = uint64(len(b.data[Text]))
	return uint32(at)
}

// Note adds a note.
func (b *Builder) Note(kind uint32, text string) { b.add(Notes, kind, b.text(text)) }

// Module adds a module mapped at [lo, hi) with bias lo.
func (b *Builder) Module(path string, lo, hi uint64) int {
	return b.add(Modules, lo, hi, lo, b.text(path), uint32(0))
}

// Func adds a function.
func (b *Builder) Func(module int, vaddr uint64) int { return b.add(Funcs, vaddr, int32(module)) }

// Loop adds a parallel region that ran sweep times in a row.
func (b *Builder) Loop(module int, vaddr, entries, sweep uint64) Region {
	return Region(b.add(Loops, vaddr, entries, int32(module), uint32(0), uint64(0), int32(-1), uint32(0), uint32(0), uint32(0), sweep) | loopBit)
}

// WorkLoop adds a static loop of libomp in the region at vaddr of the same
// module; joined is a loop from which no barrier parts it, 0 is none.
func (b *Builder) WorkLoop(module int, vaddr, site, entries uint64, joined Region) Region {
	n, _ := joined.Loop()
	return Region(b.add(Loops, vaddr, entries, int32(module), uint32(0), site, int32(module), uint32(aboutLibOMP|aboutStatic),
		uint32(n)) | loopBit)
}

// Thread adds a thread.
func (b *Builder) Thread(rank, cpu, node int) int {
	return b.add(Threads, uint32(rank), uint32(cpu), uint32(node), uint32(0))
}

// Site adds a call stack of return addresses.
func (b *Builder) Site(frames ...uint64) int {
	first := b.count[Frames]
	for _, f := range frames {
		b.add(Frames, f)
	}
	return b.add(Sites, uint32(first), uint32(len(frames)))
}

// Object adds an object.
func (b *Builder) Object(kind uint8, site, rank, ordinal int, addr, bytes uint64) int {
	return b.add(Objects, addr, bytes, uint32(site), uint32(rank), uint32(ordinal), kind, uint8(0))
}

// Page adds a page record.
func (b *Builder) Page(p Page) int {
	var flags uint32
	if p.Serial {
		flags |= 1
	}
	return b.add(Pages, p.Number, p.PC, uint32(p.Object), int32(p.Home), uint32(p.Thread), uint32(p.Region), int32(p.Module), flags)
}

// Block adds counters; First and Last are below 4096.
func (b *Builder) Block(k Block) int {
	fields := []any{k.Count[0][0], k.Count[0][1]}
	for _, level := range k.Count[1:] {
		fields = append(fields, uint32(level[0]), uint32(level[1]))
	}
	return b.add(Blocks, append(fields, uint32(k.Page), uint32(k.Thread), uint32(k.Region), uint32(k.Region), uint32(0), uint16(k.First), uint16(k.Last))...)
}

// Use adds the uses of an instruction.
func (b *Builder) Use(u Use) int {
	return b.add(Uses, u.Code.VAddr, u.Local, u.Remote, u.Unknown, uint32(u.Owner), uint32(u.Region), int32(u.Code.Module), uint32(u.Op))
}

// Interval adds what a thread did; Count is as long as there are nodes, and one more.
func (b *Builder) Interval(v Interval) int {
	return b.add(Intervals, uint32(v.Part), uint32(v.Shift), uint32(v.Thread), uint32(v.Region), v.Work, v.Count)
}

// Small adds a vote.
func (b *Builder) Small(v SmallVote) int { return b.add(Small, v.Page, uint32(v.Site), int32(1)) }

// Bytes is the arena.
func (b *Builder) Bytes() []byte {
	head := make([]byte, 4096)
	copy(head, magic)
	for i, v := range []uint32{b.Header.Version, b.Header.Flags, uint32(b.Header.PID), uint32(b.Header.PPID), uint32(b.Header.ExitStatus), b.Header.Period, b.Header.CPUs, b.Header.Nodes, b.Header.command, b.Header.program} {
		le.PutUint32(head[16+4*i:], v)
	}
	le.PutUint64(head[56:], b.Header.StartNanos)
	le.PutUint64(head[64:], b.Header.Lost)
	out := head
	for s := range b.data {
		at := sectionHead + s*32
		le.PutUint64(head[at:], uint64(len(out)))
		le.PutUint64(head[at+8:], b.stride(Section(s)))
		le.PutUint64(head[at+16:], b.count[s])
		le.PutUint64(head[at+24:], b.count[s])
		out = append(out, b.data[s]...)
		copy(out, head)
	}
	return out
}
