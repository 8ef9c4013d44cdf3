package perfdata

// TimeConv turns the ticks of a processor's clock into perf's nanoseconds: the
// record TIME_CONV.
type TimeConv struct{ Shift, Mult, Zero uint64 }

func (c TimeConv) nanos(ticks uint64) uint64 {
	if c.Shift >= 64 {
		return c.Zero
	}
	quot, rem := ticks>>c.Shift, ticks&(1<<c.Shift-1)
	return c.Zero + quot*c.Mult + (rem*c.Mult)>>c.Shift
}

// Bits of an SPE events packet (Arm ARM, "Statistical Profiling Extension
// sample record protocol").
const (
	speL1Access  = 1 << 2
	speL1Refill  = 1 << 3
	speLLCAccess = 1 << 8
	speLLCMiss   = 1 << 9
	speRemote    = 1 << 10
)

// speSamples calls visit with the loads and stores of an AUXTRACE record. The
// thread is that of the record or, where a context packet says so, of the trace.
func (f *File) speSamples(r *record, s *Sample, visit func(*Sample) error) error {
	base := Sample{Event: f.speEvent(), Mode: 2}
	if len(r.body) >= auxtraceRecordBytes-headBytes {
		base.TID, base.CPU = f.order.u32(r.body[28:]), f.order.u32(r.body[32:])
		base.PID = base.TID
	}
	p := speRecord{Sample: base}
	for b := r.after; len(b) > 0; {
		n, end := p.packet(b)
		if n <= 0 || n > len(b) {
			return nil // cut short, or a packet that nobody knows: its size is not known either
		}
		if end {
			if p.memory {
				*s = p.finish(f.timeConv)
				if err := visit(s); err != nil {
					return err
				}
			}
			p = speRecord{Sample: base}
		}
		b = b[n:]
	}
	return nil
}

// speEvent is the event that has the trace: the first without a period of its own
// kind is as good as any; perf has one.
func (f *File) speEvent() int {
	for i := range f.Events {
		if f.Events[i].Attr.SampleType&sampleDataSrc != 0 {
			return i
		}
	}
	return 0
}

// speRecord is the packets of one sampled instruction.
type speRecord struct {
	Sample
	memory, store bool
	events        uint64
	source        uint64
	hasSource     bool
	ticks         uint64
}

// packet reads one packet and returns its size, 0 if it is not known, and whether
// the record ends with it.
func (p *speRecord) packet(b []byte) (size int, end bool) {
	head, index, at := b[0], b[0]&7, 1
	if head&0xfc == 0x20 { // an extended header: more bits of the index
		if len(b) < 2 {
			return 0, false
		}
		index = head&3<<3 | b[1]&7
		head, at = b[1], 2
	}
	switch head {
	case 0x00:
		return at, false
	case 0x01:
		return at, true
	}
	n := 1 << (head >> 4 & 3)
	if head < 0x40 || at+n > len(b) {
		return 0, false
	}
	var v uint64
	for i := n - 1; i >= 0; i-- { // little-endian whatever the machine
		v = v<<8 | uint64(b[at+i])
	}
	switch {
	case head == 0x71:
		p.ticks, end = v, true
	case head&0xf8 == 0xb0:
		p.address(index, v)
	case head&0xf8 == 0x98:
		switch index {
		case 0:
			p.Latency = v
		case 1:
			p.Issue = uint16(v)
		}
	case head&0xcf == 0x42:
		p.events = v
	case head&0xcf == 0x43:
		p.source, p.hasSource = v, true
	case head&0xfc == 0x64:
		p.TID = uint32(v)
	case head&0xfc == 0x48:
		p.memory, p.store = head&3 == 1, v&1 != 0
	}
	return at + n, end
}

func (p *speRecord) address(index uint8, v uint64) {
	switch index {
	case 0:
		p.IP = signed56(v)
		if v>>61&3 != 0 { // exception level of the instruction
			p.Mode = 1
		}
	case 2:
		p.Addr = signed56(v)
	case 3:
		p.Phys = v & (1<<56 - 1)
	}
}

// signed56 is an address without its tag: kernel addresses begin with ones.
func signed56(v uint64) uint64 {
	if v>>48&0xff == 0xff {
		return v | 0xff<<56
	}
	return v & (1<<56 - 1)
}

// finish makes a sample of the record, with what perf would say of its source.
func (p *speRecord) finish(c TimeConv) Sample {
	s := p.Sample
	if p.ticks != 0 {
		s.Time = c.nanos(p.ticks)
	}
	s.Period = 1
	op, level, num, remote := uint64(OpLoad), uint64(0), uint64(0), uint64(0)
	if p.store {
		op = OpStore
	}
	switch {
	case p.events&speLLCMiss != 0:
		level, num = LevelL3|LevelMiss, NumRAM
	case p.events&speLLCAccess != 0:
		level, num = LevelL3|LevelHit, NumL3
	case p.events&speL1Refill != 0:
		level, num = LevelL1|LevelMiss, NumL2
	case p.events&speL1Access != 0:
		level, num = LevelL1|LevelHit, NumL1
	}
	if p.hasSource {
		num, remote = speSource(p.source)
		level = 0
	}
	if p.events&speRemote != 0 {
		remote = 1
	}
	s.Source = DataSrc(op | level<<5 | num<<33 | remote<<37)
	return s
}

// speSource is the level of a data source packet as Neoverse cores number them
// (their technical reference manuals, "Data source packet").
func speSource(v uint64) (num, remote uint64) {
	switch v {
	case 0x0:
		return NumL1, 0
	case 0x8:
		return NumL2, 0
	case 0x9, 0xa, 0xb, 0xc: // another core, the cluster, the system's cache, another cluster
		return NumL3, 0
	case 0xd:
		return NumAnyCache, 1
	case 0xe:
		return NumRAM, 0
	}
	return NumNone, 0
}
