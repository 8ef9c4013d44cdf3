package perfdata

// DataSrc says where a load was served from or a store went to: union
// perf_mem_data_src of linux/perf_event.h, as it stands in a sample. Newer
// processors fill the level number, older ones the bits of Level; a reader looks
// at the number first.
type DataSrc uint64

// Bits of DataSrc.Op.
const (
	OpLoad  = 0x02
	OpStore = 0x04
)

// Bits of DataSrc.Level.
const (
	LevelHit       = 0x02
	LevelMiss      = 0x04
	LevelL1        = 0x08
	LevelLFB       = 0x10
	LevelL2        = 0x20
	LevelL3        = 0x40
	LevelLocalRAM  = 0x80
	LevelRemRAM1   = 0x100
	LevelRemRAM2   = 0x200
	LevelRemCache1 = 0x400
	LevelRemCache2 = 0x800
	LevelIO        = 0x1000
	LevelUncached  = 0x2000
)

// Values of DataSrc.LevelNum.
const (
	NumL1       = 0x01
	NumL2       = 0x02
	NumL3       = 0x03
	NumL4       = 0x04
	NumL2MHB    = 0x05
	NumMSC      = 0x06
	NumUncached = 0x08
	NumCXL      = 0x09
	NumIO       = 0x0a
	NumAnyCache = 0x0b
	NumLFB      = 0x0c
	NumRAM      = 0x0d
	NumPMEM     = 0x0e
	NumNone     = 0x0f
)

// Bits of DataSrc.Snoop.
const (
	SnoopNone = 0x02
	SnoopHit  = 0x04
	SnoopMiss = 0x08
	SnoopHITM = 0x10
)

// Bits of DataSrc.SnoopX.
const (
	SnoopXForward = 0x01
	SnoopXPeer    = 0x02
)

func (d DataSrc) bits(shift, width uint) uint { return uint(d>>shift) & (1<<width - 1) }

// Op is what the instruction did, as bits Op….
func (d DataSrc) Op() uint { return d.bits(0, 5) }

// Level is the memory level in its old form, as bits Level….
func (d DataSrc) Level() uint { return d.bits(5, 14) }

// Snoop is what the snoop of other caches found, as bits Snoop….
func (d DataSrc) Snoop() uint { return d.bits(19, 5) }

// Lock is 1 for no locked access, 2 for one, 0 where the processor does not say.
func (d DataSrc) Lock() uint { return d.bits(24, 2) }

// TLB is how the address was translated.
func (d DataSrc) TLB() uint { return d.bits(26, 7) }

// LevelNum is the memory level in its new form, one of Num….
func (d DataSrc) LevelNum() uint { return d.bits(33, 4) }

// Remote is whether the level is not this node's.
func (d DataSrc) Remote() bool { return d.bits(37, 1) != 0 }

// SnoopX is more of Snoop, as bits SnoopX….
func (d DataSrc) SnoopX() uint { return d.bits(38, 2) }

// Blk is why the access was blocked.
func (d DataSrc) Blk() uint { return d.bits(40, 3) }

// Hops is how far the level is: 0 not said, 1 another core of the node, 2 another
// node of the socket, 3 another socket, 4 another board.
func (d DataSrc) Hops() uint { return d.bits(43, 3) }
