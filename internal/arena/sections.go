package arena

import (
	"encoding/binary"
	"io"
)

var le = binary.LittleEndian

// Note is a line for the reader of the profile.
type Note struct {
	Kind uint32 // NoteWarning or NotePinned
	Text string
}

// The kinds of notes.
const (
	NoteWarning = 1
	NotePinned  = 2
)

// Notes returns the notes in the order of their making.
func (a *Arena) Notes() ([]Note, error) {
	t, err := a.texts()
	if err != nil {
		return nil, err
	}
	return read(a, Notes, func(b []byte) Note { return Note{le.Uint32(b), t.at(le.Uint32(b[4:]))} })
}

// Module is an ELF file that was mapped at [Lo, Hi) with load bias Base.
type Module struct {
	Lo, Hi, Base uint64
	Path         string
	Dead         bool // unmapped before the end
}

// Modules returns the modules that code ran in or that were announced.
func (a *Arena) Modules() ([]Module, error) {
	t, err := a.texts()
	if err != nil {
		return nil, err
	}
	return read(a, Modules, func(b []byte) Module {
		return Module{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), t.at(le.Uint32(b[24:])), le.Uint32(b[28:]) != 0}
	})
}

// Code is an ELF virtual address of a module; Module -1 is none, VAddr then an
// address of the process.
type Code struct {
	VAddr  uint64
	Module int
	// NoSymbol: the function is not known, VAddr is the first address of its module.
	NoSymbol bool
}

func parseCode(b []byte) Code {
	return Code{le.Uint64(b), int(int32(le.Uint32(b[8:]))), le.Uint32(b[12:]) != 0}
}

// Funcs returns the functions by id; number 0 is "not known".
func (a *Arena) Funcs() ([]Code, error) { return read(a, Funcs, parseCode) }

// Starts returns the start routines of threads by id; number 0 is none.
func (a *Arena) Starts() ([]Code, error) { return read(a, Starts, parseCode) }

// Loop is a parallel region, named by its outlined function, or a worksharing
// loop in it.
type Loop struct {
	Code
	// Entries counts the instances at the team's master.
	Entries uint64
	// Dynamic: it hands out its work while it runs; a region outside its static
	// loops, or, DynamicLoops, with these.
	Dynamic, DynamicLoops bool
	// Site is the address that the call for the loop's bounds returns to; Module
	// -1: the region outside worksharing loops.
	Site Code
	// LibOMP tells libomp's loops from libgomp's; Static: unchunked static.
	LibOMP, Static bool
	// Affine: of a dynamic or guided schedule, and handed out by node.
	Affine bool
	// Joined is another loop of the region from which no barrier parts this one,
	// or the way there; 0 is none.
	Joined int
	// Sweep is how often a region runs in a row, without another region between;
	// 0 if that varies, and for a worksharing loop.
	Sweep uint64
}

// Flags of a loop (wire.h).
const (
	aboutLibOMP = 2
	aboutStatic = 4
	aboutAffine = 8
)

// Loops returns the loops by id; number 0 is unused.
func (a *Arena) Loops() ([]Loop, error) {
	return read(a, Loops, func(b []byte) Loop {
		u32, u64 := le.Uint32, le.Uint64
		l := Loop{
			Code: Code{u64(b), int(int32(u32(b[16:]))), false}, Entries: u64(b[8:]), Dynamic: u32(b[20:]) != 0, DynamicLoops: u32(b[20:])&2 != 0,
			Site: Code{u64(b[24:]), int(int32(u32(b[32:]))), false}, LibOMP: u32(b[36:])&aboutLibOMP != 0, Static: u32(b[36:])&aboutStatic != 0, Affine: u32(b[36:])&aboutAffine != 0,
			Joined: int(u32(b[40:])), Sweep: u64(b[48:]),
		}
		if l.Site.VAddr == 0 {
			l.Site.Module = -1
		}
		varies, run := u32(b[44:]) != 0, u64(b[56:]) // the last row may still go on
		switch {
		case l.Sweep == 0:
			l.Sweep = run
		case varies || run != 0 && run != l.Sweep:
			l.Sweep = 0
		}
		return l
	})
}

// Thread is a rank on a CPU.
type Thread struct {
	Rank, CPU, Node int
	Pinned          bool
}

// Threads returns the threads by index.
func (a *Arena) Threads() ([]Thread, error) {
	return read(a, Threads, func(b []byte) Thread {
		return Thread{int(le.Uint32(b)), int(le.Uint32(b[4:])), int(le.Uint32(b[8:])), le.Uint32(b[12:]) != 0}
	})
}

// Sites returns the call stacks by site id, as return addresses of the process,
// innermost first; number 0 is unused.
func (a *Arena) Sites() ([][]uint64, error) {
	frames, err := read(a, Frames, func(b []byte) uint64 { return le.Uint64(b) })
	if err != nil {
		return nil, err
	}
	return read(a, Sites, func(b []byte) []uint64 {
		first, n := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:]))
		if first+n > uint64(len(frames)) {
			return nil
		}
		return frames[first : first+n : first+n]
	})
}

// The kinds of objects.
const (
	KindHeap    = 1
	KindMapping = 2
	KindStack   = 3
)

// Object is an allocation, a mapping or a stack; Site is 0 for stacks.
type Object struct {
	Addr, Bytes         uint64
	Site, Rank, Ordinal int
	Kind                uint8
	Overlaps            bool
	File                bool   // a mapping of a file
	Name                string // where nothing else names it; "" in an arena
}

// Objects returns the objects by id; number 0 is "none".
func (a *Arena) Objects() ([]Object, error) {
	return read(a, Objects, func(b []byte) Object {
		return Object{le.Uint64(b), le.Uint64(b[8:]), int(le.Uint32(b[16:])), int(le.Uint32(b[20:])), int(le.Uint32(b[24:])), b[28], b[29] != 0, b[30]&1 != 0, ""}
	})
}

// Region is a region key: a loop, or a function of a thread with a start routine.
type Region uint32

const loopBit = 1 << 31

// LoopRegion is the key of loop n.
func LoopRegion(n int) Region { return Region(n | loopBit) }

// Loop returns the loop id, and whether the region is a loop.
func (r Region) Loop() (int, bool) { return int(r &^ loopBit), r&loopBit != 0 }

// Function returns the ids of the function and of the thread's start routine.
func (r Region) Function() (fn, start int) { return int(r & 0xffff), int(r >> 16 & 0x7fff) }

// Of is the function region of a thread with the start routine of that id; a loop
// stays what it is.
func (r Region) Of(start int) Region {
	if _, loop := r.Loop(); loop {
		return r
	}
	return r&0xffff | Region(start&0x7fff)<<16
}

// Page is a page of one object on one home, and its first touch.
type Page struct {
	Number uint64 // address / 4096
	PC     uint64 // ELF vaddr in Module; 0 is not known
	Object int    // 0 is none
	Home   int    // -1 is not known
	Thread int
	Region Region
	Module int // of PC, -1 is none
	Serial bool
	Kernel bool // touched by a system call
	Placed bool // the program itself chose the home
}

// EachPage calls do for every page record; i is what blocks refer to.
func (a *Arena) EachPage(do func(i int, p Page)) error {
	return a.each(Pages, 1, func(i int, b []byte) {
		flags := le.Uint32(b[36:])
		do(i, Page{
			Number: le.Uint64(b), PC: le.Uint64(b[8:]), Object: int(le.Uint32(b[16:])), Home: int(int32(le.Uint32(b[20:]))),
			Thread: int(le.Uint32(b[24:])), Region: Region(le.Uint32(b[28:])), Module: int(int32(le.Uint32(b[32:]))),
			Serial: flags&1 != 0, Kernel: flags&2 != 0, Placed: flags&4 != 0,
		})
	})
}

// NumPages is one more than the highest page record.
func (a *Arena) NumPages() int { return int(a.section[Pages].count) }

// Block is the counters of (page record, thread, region).
// Count[level][operation] is in accesses; level and operation count as in package profile.
// First and Last bound the instances of the region in its row in which accesses
// missed the L1, rounded down to 12 bits; First > Last: none did.
type Block struct {
	Page, Thread int
	Region       Region
	Count        [4][2]uint64
	Latency      [4][2]uint64 // cycles, summed; 0 in an arena
	First, Last  uint64
}

// instance is the number that a block has in short (arena.h).
func instance(short uint16) uint64 {
	if short < 1<<12 {
		return uint64(short)
	}
	e := short>>11 - 1
	return (uint64(short) - uint64(e)<<11) << e
}

// NumBlocks is one more than there are blocks of counters.
func (a *Arena) NumBlocks() int { return int(a.section[Blocks].count) }

// EachBlock calls do for every block of counters. Several blocks may have the
// same key.
func (a *Arena) EachBlock(do func(b *Block)) error {
	var k Block
	return a.each(Blocks, 1, func(_ int, b []byte) {
		k.Count[0] = [2]uint64{le.Uint64(b), le.Uint64(b[8:])}
		for level := 1; level < 4; level++ {
			for op := 0; op < 2; op++ {
				k.Count[level][op] = uint64(le.Uint32(b[16+((level-1)*2+op)*4:]))
			}
		}
		k.Page, k.Thread, k.Region = int(le.Uint32(b[40:])), int(le.Uint32(b[44:])), Region(le.Uint32(b[48:]))
		k.First, k.Last = instance(le.Uint16(b[60:])), instance(le.Uint16(b[62:]))
		do(&k)
	})
}

// Owner is what a page is part of, as far as the plugin knows.
type Owner uint32

// The kinds of owners: an object, the page record that stands for a variable or for
// what is nobody's, or the site of small allocations.
const (
	ownerPage = 1 << 31
	ownerSite = 1 << 30
)

// PageOwner and SiteOwner make owners; the number of an object is one itself.
func PageOwner(record int) Owner { return Owner(record | ownerPage) }

// SiteOwner is the owner of the small allocations of a site.
func SiteOwner(site int) Owner { return Owner(site | ownerSite) }

// Of returns the object, the page record or the site; the others are 0.
func (o Owner) Of() (object, page, site int) {
	switch {
	case o&ownerPage != 0:
		return 0, int(o &^ ownerPage), 0
	case o&ownerSite != 0:
		return 0, 0, int(o &^ ownerSite)
	}
	return int(o), 0, 0
}

// Use is the accesses to DRAM by an instruction.
type Use struct {
	Code                   Code
	Owner                  Owner
	Region                 Region
	Op                     int
	Local, Remote, Unknown uint64
	Page                   uint64 // its number is any of the owner's pages where Owner is 0; 0 in an arena
	Latency, Loads         uint64 // cycles, summed over loads; 0 in an arena
}

// EachUse calls do for every use. Several may have the same key.
func (a *Arena) EachUse(do func(u *Use)) error {
	var u Use
	return a.each(Uses, 1, func(_ int, b []byte) {
		u = Use{
			Code: Code{le.Uint64(b), int(int32(le.Uint32(b[40:]))), false}, Owner: Owner(le.Uint32(b[32:])), Region: Region(le.Uint32(b[36:])),
			Op: int(le.Uint32(b[44:])), Local: le.Uint64(b[8:]), Remote: le.Uint64(b[16:]), Unknown: le.Uint64(b[24:]),
		}
		do(&u)
	})
}

// Interval is what a thread did in a region during one part of the run: the Part-th
// of 1<<Shift accesses each; of nanoseconds, where the run was sampled.
type Interval struct {
	Part, Shift, Thread int
	Region              Region
	Work                uint64   // accesses of any level
	Home                int      // of the memory that Work is of; -1 is not known, as in an arena
	Count               []uint64 // DRAM accesses by home, the last is of pages without; valid during the call
}

// EachInterval calls do for every interval. Several may have the same key.
func (a *Arena) EachInterval(do func(v *Interval)) error {
	v := Interval{Home: -1, Count: make([]uint64, a.Nodes+1)}
	return a.each(Intervals, 1, func(_ int, b []byte) {
		v.Part, v.Shift, v.Thread, v.Region = int(le.Uint32(b)), int(le.Uint32(b[4:])), int(le.Uint32(b[8:])), Region(le.Uint32(b[12:]))
		v.Work = le.Uint64(b[16:])
		for i := range v.Count {
			v.Count[i] = le.Uint64(b[24+8*i:])
		}
		do(&v)
	})
}

// SmallVote is the site to which a page of small allocations mostly belongs.
type SmallVote struct {
	Page uint64
	Site int
}

// EachSmall calls do for every page with small allocations.
func (a *Arena) EachSmall(do func(SmallVote)) error {
	return a.eachSparse(Small, func(b []byte) {
		if page := le.Uint64(b); page != 0 {
			do(SmallVote{page, int(le.Uint32(b[8:]))})
		}
	})
}

// eachSparse is each for a section that is mostly holes.
func (a *Arena) eachSparse(id Section, do func(b []byte)) error {
	h, ok := a.r.(interface {
		NextData(offset int64) (int64, error)
	})
	if !ok {
		return a.each(id, 0, func(_ int, b []byte) { do(b) })
	}
	s := a.section[id]
	const piece = 4096
	buf := make([]byte, piece)
	end := int64(s.offset + s.count*s.stride)
	for at := int64(s.offset); at < end; at += piece {
		next, err := h.NextData(at)
		if err != nil || next >= end {
			return nil
		}
		at = max(at, next&^(piece-1))
		n, err := a.r.ReadAt(buf[:min(piece, end-at)], at)
		if err != nil && err != io.EOF {
			return &FormatError{id.String(), err}
		}
		for b := buf[:n]; uint64(len(b)) >= s.stride; b = b[s.stride:] {
			do(b)
		}
	}
	return nil
}

// Accesses is the number of accesses so far, counted or sampled over.
func (a *Arena) Accesses() (uint64, error) {
	var sum uint64
	s := a.section[L1]
	var b [8]byte
	for i := uint64(0); i < s.count; i++ {
		if _, err := a.r.ReadAt(b[:], int64(s.offset+i*s.stride)); err != nil {
			return 0, &FormatError{L1.String(), err}
		}
		sum += le.Uint64(b[:])
	}
	return sum, nil
}
