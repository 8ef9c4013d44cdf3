package perfdata

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Attr is how an event was opened: the fields of perf_event_attr that numaopt
// looks at. perf has made it longer many times; what a file's attr is short of is
// zero, and what is beyond is not looked at.
type Attr struct {
	Type       uint32
	Config     uint64
	Config1    uint64
	Config2    uint64
	Period     uint64 // or frequency, if Freq
	SampleType uint64
	ReadFormat uint64
	Flags      uint64 // bit n is the n-th flag of the kernel's list
	BranchType uint64
	RegsUser   uint64
	ClockID    int32
	RegsIntr   uint64
}

// Freq is whether Period is samples a second.
func (a *Attr) Freq() bool { return a.flag(flagFreq) }

// UserOnly is whether kernel and hypervisor were excluded.
func (a *Attr) UserOnly() bool { return a.flag(flagExcludeKernel) && a.flag(flagExcludeHV) }

// UseClockID is whether times are of the clock ClockID; perf's own if not.
func (a *Attr) UseClockID() bool { return a.flag(flagUseClockID) }

func (a *Attr) flag(n uint) bool { return a.Flags>>n&1 != 0 }

// attrMin is the size of the first version of perf_event_attr.
const attrMin = 64

// parseAttr reads the attr at the start of b, all of which it is.
func parseAttr(b []byte, o order) (Attr, error) {
	if len(b) < attrMin {
		return Attr{}, fmt.Errorf("an event's attr has %d bytes, it needs %d", len(b), attrMin)
	}
	word := func(at int) uint64 {
		if at+8 > len(b) {
			return 0
		}
		return o.u64(b[at:])
	}
	half := func(at int) uint32 {
		if at+4 > len(b) {
			return 0
		}
		return o.u32(b[at:])
	}
	a := Attr{
		Type: half(0), Config: word(8), Period: word(16), SampleType: word(24), ReadFormat: word(32), Flags: word(40),
		Config1: word(56), Config2: word(64), BranchType: word(72), RegsUser: word(80), ClockID: int32(half(92)), RegsIntr: word(96),
	}
	if o.foreign { // a bit field: the compiler of a machine of the other order begins at the other end
		a.Flags = bits.Reverse64(a.Flags)
	}
	if unknown := a.SampleType &^ (sampleEnd - 1); unknown != 0 {
		return a, fmt.Errorf("samples have fields that are not known (sample_type %#x): this perf.data is of a newer kernel", unknown)
	}
	return a, nil
}

// order is the byte order of a file.
type order struct{ foreign bool }

func (o order) u64(b []byte) uint64 {
	v := binary.LittleEndian.Uint64(b)
	if o.foreign {
		return bits.ReverseBytes64(v)
	}
	return v
}

func (o order) u32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if o.foreign {
		return bits.ReverseBytes32(v)
	}
	return v
}

// head is a record's: its type, misc and size.
func (o order) head(b []byte) (kind uint32, misc uint16, size int) {
	v := binary.LittleEndian.Uint64(b)
	if o.foreign {
		v = swapHead(v)
	}
	return uint32(v), uint16(v >> 32), int(v >> 48)
}

// swapHead is a head of the other byte order.
func swapHead(v uint64) uint64 {
	v = bits.ReverseBytes64(v)
	return v>>32 | v>>16&0xffff<<32 | v<<48
}
