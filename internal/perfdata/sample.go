package perfdata

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Sample is one sample: an access, a page fault or whatever its event counts.
// Fields that the event does not record are zero; Event.Has says which it does.
type Sample struct {
	Event    int    // index into File.Events
	Mode     uint16 // where the processor was: 1 kernel, 2 user, 3 hypervisor, 4 and 5 in a guest
	PID, TID uint32
	CPU      uint32
	Time     uint64 // ns, of the file's clock
	IP       uint64
	Addr     uint64 // of the data, virtual
	Phys     uint64 // of the data, physical; 0 if the kernel does not tell
	PageSize uint64 // of the data, bytes
	Period   uint64 // events that the sample stands for
	Latency  uint64 // cycles: the sample's weight
	Issue    uint16 // cycles to the issue of a load, where WEIGHT_STRUCT says it
	Retire   uint16 // cycles to its retirement, likewise
	Source   DataSrc
}

// layout is where the fields of an event's samples are: those before the first
// field of variable length at fixed offsets, -1 for one that is not there.
type layout struct {
	ip, tid, time, addr, cpu, period int
	id                               int // of the event's id; -1 if samples do not tell
	head                             int // bytes of the fixed fields at the start
	kind                             uint64
	read, branch                     uint64
	regsUser, regsIntr               int // registers of a dump

	// Where nothing has a variable length, all is at fixed offsets:
	plain                          bool
	weight, source, phys, pageSize int
	size                           int // bytes of a sample's body

	window window
}

// window is where the fields of a plain sample are within a window of windowBytes from
// its body's start, so that all are read without a branch: a field that is not there is
// read from anywhere, and masked.
type window struct {
	fits                                                        bool
	ip, tid, time, addr, cpu, period, weigh, source, phys, page slot
	issue                                                       uint64 // mask of Issue and Retire, which only WEIGHT_STRUCT has
}

type slot struct {
	at   uint8
	mask uint64
}

const windowBytes = 256

func newWindow(l *layout) window {
	slotOf := func(at int) slot {
		if at < 0 || at > windowBytes-8 {
			return slot{}
		}
		return slot{uint8(at), math.MaxUint64}
	}
	w := window{fits: l.plain && l.size <= windowBytes, ip: slotOf(l.ip), tid: slotOf(l.tid), time: slotOf(l.time), addr: slotOf(l.addr), cpu: slotOf(l.cpu),
		period: slotOf(l.period), weigh: slotOf(l.weight), source: slotOf(l.source), phys: slotOf(l.phys), page: slotOf(l.pageSize)}
	if l.kind&sampleWeightStruct != 0 {
		w.weigh.mask, w.issue = math.MaxUint32, math.MaxUint64
	}
	return w
}

// word is the field at a slot.
func (f slot) word(b *[windowBytes]byte) uint64 {
	at := f.at & (windowBytes - 8) // fields are at multiples of 8: this is f.at, and within b
	return binary.LittleEndian.Uint64(b[at : int(at)+8])
}

// read fills s from the window at a sample's body.
func (w *window) read(b *[windowBytes]byte, s *Sample) {
	s.IP = w.ip.word(b) & w.ip.mask
	both := w.tid.word(b) & w.tid.mask
	s.PID, s.TID = uint32(both), uint32(both>>32)
	s.Time = w.time.word(b) & w.time.mask
	s.Addr = w.addr.word(b) & w.addr.mask
	s.CPU = uint32(w.cpu.word(b) & w.cpu.mask)
	s.Period = w.period.word(b) & w.period.mask
	weight := w.weigh.word(b)
	s.Latency = weight & w.weigh.mask
	weight &= w.issue
	s.Issue, s.Retire = uint16(weight>>32), uint16(weight>>48)
	s.Source = DataSrc(w.source.word(b) & w.source.mask)
	s.Phys = w.phys.word(b) & w.phys.mask
	s.PageSize = w.page.word(b) & w.page.mask
}

func newLayout(a *Attr) layout {
	l := layout{kind: a.SampleType, read: a.ReadFormat, branch: a.BranchType,
		regsUser: bits.OnesCount64(a.RegsUser), regsIntr: bits.OnesCount64(a.RegsIntr)}
	at := 0
	place := func(bit uint64) int {
		if a.SampleType&bit == 0 {
			return -1
		}
		at += 8
		return at - 8
	}
	identifier := place(sampleIdentifier)
	l.ip, l.tid, l.time, l.addr = place(sampleIP), place(sampleTID), place(sampleTime), place(sampleAddr)
	l.id = place(sampleID)
	place(sampleStreamID)
	l.cpu, l.period = place(sampleCPU), place(samplePeriod)
	if identifier >= 0 {
		l.id = identifier
	}
	l.head = at
	l.weight = place(sampleWeight | sampleWeightStruct)
	l.source = place(sampleDataSrc)
	place(sampleTransaction)
	l.phys = place(samplePhysAddr)
	place(sampleCgroup)
	l.pageSize = place(sampleDataPageSize)
	place(sampleCodePageSize)
	l.size = at
	l.plain = a.SampleType&(sampleRead|sampleCallchain|sampleRaw|sampleBranchStack|sampleRegsUser|sampleStackUser|sampleRegsIntr|sampleAux) == 0
	l.window = newWindow(&l)
	return l
}

// decode fills s from the body of a sample record, what follows its header. It
// reports whether the body is as long as its own fields say.
func (l *layout) decode(b []byte, o order, s *Sample) bool {
	if len(b) < l.head {
		return false
	}
	if l.ip >= 0 {
		s.IP = o.u64(b[l.ip:])
	}
	if l.tid >= 0 {
		s.PID, s.TID = o.u32(b[l.tid:]), o.u32(b[l.tid+4:])
	}
	if l.time >= 0 {
		s.Time = o.u64(b[l.time:])
	}
	if l.addr >= 0 {
		s.Addr = o.u64(b[l.addr:])
	}
	if l.cpu >= 0 {
		s.CPU = o.u32(b[l.cpu:])
	}
	if l.period >= 0 {
		s.Period = o.u64(b[l.period:])
	}
	b = b[l.head:]
	if !l.plain {
		var ok bool
		if b, ok = l.skip(b, o); !ok {
			return false
		}
	}
	return l.tail(b, o, s)
}

// weigh takes the word of the weight: of 64 bits, or a struct of three.
func (s *Sample) weigh(w, kind uint64) {
	if kind&sampleWeightStruct == 0 {
		s.Latency = w
		return
	}
	s.Latency, s.Issue, s.Retire = w&0xffffffff, uint16(w>>32), uint16(w>>48)
}

// skip passes over what comes between the fixed fields and the weight.
func (l *layout) skip(b []byte, o order) ([]byte, bool) {
	if l.kind&sampleRead != 0 {
		n, ok := l.readBytes(b, o)
		if b, ok = cut(b, n, ok); !ok {
			return nil, false
		}
	}
	if l.kind&sampleCallchain != 0 {
		n, ok := count(b, o, 8, 0)
		if b, ok = cut(b, n, ok); !ok {
			return nil, false
		}
	}
	if l.kind&sampleRaw != 0 {
		if len(b) < 4 {
			return nil, false
		}
		var ok bool
		if b, ok = cut(b, 4+uint64(o.u32(b)), true); !ok {
			return nil, false
		}
	}
	if l.kind&sampleBranchStack != 0 {
		entry, fixed := uint64(24), uint64(0)
		if l.branch&branchHWIndex != 0 {
			fixed = 8
		}
		if l.branch&branchCounters != 0 {
			entry += 8
		}
		n, ok := count(b, o, entry, fixed)
		if b, ok = cut(b, n, ok); !ok {
			return nil, false
		}
	}
	if l.kind&sampleRegsUser != 0 {
		var ok bool
		if b, ok = registers(b, o, l.regsUser); !ok {
			return nil, false
		}
	}
	if l.kind&sampleStackUser != 0 {
		n, ok := count(b, o, 1, 0)
		if ok && n > 8 {
			n += 8 // how much of it was filled
		}
		if b, ok = cut(b, n, ok); !ok {
			return nil, false
		}
	}
	return b, true
}

// tail reads the fields from the weight on.
func (l *layout) tail(b []byte, o order, s *Sample) bool {
	if l.kind&(sampleWeight|sampleWeightStruct) != 0 {
		if len(b) < 8 {
			return false
		}
		s.weigh(o.u64(b), l.kind)
		b = b[8:]
	}
	if l.kind&sampleDataSrc != 0 {
		if len(b) < 8 {
			return false
		}
		s.Source = DataSrc(o.u64(b))
		b = b[8:]
	}
	if l.kind&sampleTransaction != 0 {
		if len(b) < 8 {
			return false
		}
		b = b[8:]
	}
	if l.kind&sampleRegsIntr != 0 {
		var ok bool
		if b, ok = registers(b, o, l.regsIntr); !ok {
			return false
		}
	}
	if l.kind&samplePhysAddr != 0 {
		if len(b) < 8 {
			return false
		}
		s.Phys = o.u64(b)
		b = b[8:]
	}
	if l.kind&sampleCgroup != 0 {
		if len(b) < 8 {
			return false
		}
		b = b[8:]
	}
	if l.kind&sampleDataPageSize != 0 {
		if len(b) < 8 {
			return false
		}
		s.PageSize = o.u64(b)
	}
	return true
}

// count is the bytes of an array: its length, fixed bytes, and as many entries.
func count(b []byte, o order, entry, fixed uint64) (uint64, bool) {
	if len(b) < 8 {
		return 0, false
	}
	n := o.u64(b)
	if n > uint64(len(b)) {
		return 0, false
	}
	return 8 + fixed + n*entry, true
}

func cut(b []byte, n uint64, ok bool) ([]byte, bool) {
	if !ok || n > uint64(len(b)) {
		return nil, false
	}
	return b[n:], true
}

// registers passes over a dump: an ABI, and registers unless that says there are none.
func registers(b []byte, o order, n int) ([]byte, bool) {
	if len(b) < 8 {
		return nil, false
	}
	size := uint64(8)
	if o.u64(b) != 0 {
		size += 8 * uint64(n)
	}
	return cut(b, size, true)
}

// readBytes is the size of a counter's value or of those of its group.
func (l *layout) readBytes(b []byte, o order) (uint64, bool) {
	each, once := uint64(8), uint64(0)
	if l.read&readID != 0 {
		each += 8
	}
	if l.read&readLost != 0 {
		each += 8
	}
	if l.read&readEnabled != 0 {
		once += 8
	}
	if l.read&readRunning != 0 {
		once += 8
	}
	if l.read&readGroup == 0 {
		return each + once, true
	}
	return count(b, o, each, once)
}

// trailer is what a record other than a sample has at its end: its size, and where the
// time is, counted from the record's end; 0 if it has none.
func trailer(a *Attr) (size, time int) {
	if !a.flag(flagSampleIDAll) {
		return 0, 0
	}
	for _, bit := range []uint64{sampleIdentifier, sampleCPU, sampleStreamID, sampleID, sampleTime, sampleTID} { // from the end
		if a.SampleType&bit == 0 {
			continue
		}
		if size += 8; bit == sampleTime {
			time = size
		}
	}
	return size, time
}

// agree is an error if the samples of two events cannot be told apart: the id is
// not at the same place in both.
func agree(events []Event) error {
	for i := range events[1:] {
		if a, b := events[0].layout.id, events[i+1].layout.id; a < 0 || a != b {
			return fmt.Errorf("the samples of events %q and %q do not say which event they are of", events[0].Name, events[i+1].Name)
		}
	}
	return nil
}
