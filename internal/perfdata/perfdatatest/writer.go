// Package perfdatatest writes files as perf record does, for tests and benchmarks:
// of any size, of either byte order, plain, as a stream or compressed. perf script
// reads them, which is how the writer is tested itself.
package perfdatatest

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"numaopt/internal/perfdata"
)

// Bits of Attr.SampleType (linux/perf_event.h).
const (
	IP = 1 << iota
	TID
	Time
	Addr
	Read
	Callchain
	ID
	CPU
	Period
	StreamID
	Raw
	BranchStack
	RegsUser
	StackUser
	Weight
	DataSrc
	Identifier
	Transaction
	RegsIntr
	PhysAddr
	Aux
	Cgroup
	DataPageSize
	CodePageSize
	WeightStruct
)

// SampleIDAll is the flag of an attr by which all records end with thread, time …
const SampleIDAll = 1 << 18

// Event is one event of a file to write.
type Event struct {
	Name string
	Attr perfdata.Attr
	IDs  []uint64
}

// Writer gathers records; File, Stream and Compressed make files of them.
type Writer struct {
	Foreign  bool // write in big-endian order
	AttrSize int  // bytes of an attr; 0 for 128
	Events   []Event
	Features map[int][]byte // sections of the header by bit, beside the events' names

	records bytes.Buffer
}

func (w *Writer) order() binary.AppendByteOrder {
	if w.Foreign {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// U64 appends words to b, in the file's order.
func (w *Writer) U64(b []byte, words ...uint64) []byte {
	for _, v := range words {
		b = w.order().AppendUint64(b, v)
	}
	return b
}

// U32 appends half words to b.
func (w *Writer) U32(b []byte, halves ...uint32) []byte {
	for _, v := range halves {
		b = w.order().AppendUint32(b, v)
	}
	return b
}

// Text appends a string as header sections have it: its padded length, it, zeros.
func (w *Writer) Text(b []byte, s string) []byte {
	n := (len(s) + 1 + 63) &^ 63
	b = w.U32(b, uint32(n))
	return append(b, append([]byte(s), make([]byte, n-len(s))...)...)
}

// Head appends the head of a record of n bytes in all.
func (w *Writer) Head(b []byte, kind uint32, misc uint16, n int) []byte {
	b = w.U32(b, kind)
	b = w.order().AppendUint16(b, misc)
	return w.order().AppendUint16(b, uint16(n))
}

// Record adds a record, and behind after it (AUXTRACE).
func (w *Writer) Record(kind uint32, misc uint16, body, behind []byte) {
	w.records.Write(w.Head(nil, kind, misc, len(body)+8))
	w.records.Write(body)
	w.records.Write(behind)
}

// Records is what was added so far, for WriteFile.
func (w *Writer) Records() []byte { return w.records.Bytes() }

// Variable is what of a sample has no fixed length.
type Variable struct {
	Callchain []uint64
	Raw       []byte // 4 bytes more than a multiple of 8
	Branches  int
	UserRegs  bool // whether there are any, of those that the attr names
	Stack     int  // bytes, a multiple of 8
}

// Sample appends a sample of the event s.Event to b.
func (w *Writer) Sample(b []byte, s *perfdata.Sample, v Variable) []byte {
	e := &w.Events[s.Event]
	start := len(b)
	b = w.Head(b, 9, s.Mode, 0)
	has := func(bit uint64) bool { return e.Attr.SampleType&bit != 0 }
	var id uint64
	if len(e.IDs) > 0 {
		id = e.IDs[int(s.CPU)%len(e.IDs)]
	}
	for _, f := range []struct {
		bit   uint64
		value uint64
	}{{Identifier, id}, {IP, s.IP}, {TID, 0}, {Time, s.Time}, {Addr, s.Addr}, {ID, id}, {StreamID, id}, {CPU, 0}, {Period, s.Period}} {
		switch {
		case !has(f.bit):
		case f.bit == TID:
			b = w.U32(b, s.PID, s.TID)
		case f.bit == CPU:
			b = w.U32(b, s.CPU, 0)
		default:
			b = w.U64(b, f.value)
		}
	}
	b = w.variable(b, e, id, v)
	if has(WeightStruct) {
		b = w.U64(b, s.Latency&0xffffffff|uint64(s.Issue)<<32|uint64(s.Retire)<<48)
	}
	for _, f := range []struct {
		bit   uint64
		value uint64
	}{{Weight, s.Latency}, {DataSrc, uint64(s.Source)}, {Transaction, 0}, {RegsIntr, 0}, {PhysAddr, s.Phys}, {Cgroup, 1}, {DataPageSize, s.PageSize}, {CodePageSize, 4096}} {
		if has(f.bit) {
			b = w.U64(b, f.value) // no registers: an ABI of zero
		}
	}
	w.put16(b[start+6:], uint16(len(b)-start))
	return b
}

func (w *Writer) put16(b []byte, v uint16) {
	if w.Foreign {
		binary.BigEndian.PutUint16(b, v)
		return
	}
	binary.LittleEndian.PutUint16(b, v)
}

func (w *Writer) variable(b []byte, e *Event, id uint64, v Variable) []byte {
	has := func(bit uint64) bool { return e.Attr.SampleType&bit != 0 }
	if has(Read) {
		b = w.U64(b, 1)
		for _, bit := range []uint64{1, 2, 4, 16} { // enabled, running, id, lost
			if e.Attr.ReadFormat&bit != 0 {
				b = w.U64(b, id)
			}
		}
	}
	if has(Callchain) {
		b = w.U64(b, uint64(len(v.Callchain)))
		b = w.U64(b, v.Callchain...)
	}
	if has(Raw) {
		b = w.U32(b, uint32(len(v.Raw)))
		b = append(b, v.Raw...)
	}
	if has(BranchStack) {
		b = w.U64(b, uint64(v.Branches))
		b = w.U64(b, make([]uint64, 3*v.Branches)...)
	}
	if has(RegsUser) {
		n := 0
		if v.UserRegs {
			n = bits.OnesCount64(e.Attr.RegsUser)
		}
		b = w.U64(b, uint64(min(n, 1)*2))
		b = w.U64(b, make([]uint64, n)...)
	}
	if has(StackUser) {
		b = w.U64(b, uint64(v.Stack))
		b = append(b, make([]byte, v.Stack)...)
		if v.Stack > 0 {
			b = w.U64(b, uint64(v.Stack))
		}
	}
	return b
}

// Add adds samples.
func (w *Writer) Add(v Variable, samples ...perfdata.Sample) {
	for i := range samples {
		w.records.Write(w.Sample(nil, &samples[i], v))
	}
}

// Trailer is what every record but a sample ends with, by the first event.
func (w *Writer) Trailer(b []byte, pid, tid uint32, time uint64) []byte {
	e := &w.Events[0]
	if e.Attr.Flags&SampleIDAll == 0 {
		return b
	}
	var id uint64
	if len(e.IDs) > 0 {
		id = e.IDs[0]
	}
	for _, bit := range []uint64{TID, Time, ID, StreamID, CPU, Identifier} {
		switch {
		case e.Attr.SampleType&bit == 0:
		case bit == TID:
			b = w.U32(b, pid, tid)
		case bit == Time:
			b = w.U64(b, time)
		case bit == CPU:
			b = w.U32(b, 0, 0)
		default:
			b = w.U64(b, id)
		}
	}
	return b
}

// Comm adds the record of a thread's name.
func (w *Writer) Comm(pid, tid uint32, time uint64, name string) {
	w.comm(pid, tid, time, name, 0)
}

// Exec adds the record of a process that became another program.
func (w *Writer) Exec(pid uint32, time uint64, name string) {
	w.comm(pid, pid, time, name, 1<<13) // PERF_RECORD_MISC_COMM_EXEC
}

func (w *Writer) comm(pid, tid uint32, time uint64, name string, misc uint16) {
	b := w.U32(nil, pid, tid)
	b = append(b, padded(name)...)
	w.Record(3, misc, w.Trailer(b, pid, tid, time), nil)
}

// Mmap adds the record of an executable mapping (MMAP2).
func (w *Writer) Mmap(pid, tid uint32, time, addr, length, offset uint64, name string) {
	b := w.U32(nil, pid, tid)
	b = w.U64(b, addr, length, offset)
	b = w.U32(b, 0, 0)
	b = w.U64(b, 0, 0)
	b = w.U32(b, 5, 2) // r-x, private
	b = append(b, padded(name)...)
	w.Record(10, 2, w.Trailer(b, pid, tid, time), nil)
}

func padded(s string) []byte {
	return append([]byte(s), make([]byte, 8-len(s)%8)...)
}

// attr is an event's perf_event_attr.
func (w *Writer) attr(a *perfdata.Attr) []byte {
	size := w.AttrSize
	if size == 0 {
		size = 128
	}
	flags := a.Flags
	if w.Foreign {
		flags = bits.Reverse64(flags)
	}
	b := w.U32(nil, a.Type, uint32(size))
	b = w.U64(b, a.Config, a.Period, a.SampleType, a.ReadFormat, flags, 0, a.Config1, a.Config2, a.BranchType, a.RegsUser)
	b = w.U32(b, 0, uint32(a.ClockID))
	b = w.U64(b, a.RegsIntr)
	return append(b, make([]byte, max(0, size-len(b)))...)[:size]
}

// File is the recording as a file.
func (w *Writer) File() []byte {
	var out bytes.Buffer
	w.WriteFile(&out, 0, func(io.Writer) error { return nil }) //nolint:errcheck // memory
	return out.Bytes()
}

// WriteFile writes a file of the gathered records and, behind them, size bytes of
// records that more writes.
func (w *Writer) WriteFile(out io.Writer, size int64, more func(io.Writer) error) error {
	const header = 104
	var ids, attrs []byte
	for i := range w.Events {
		e := &w.Events[i]
		attrs = append(attrs, w.attr(&e.Attr)...)
		attrs = w.U64(attrs, uint64(header+len(ids)), uint64(8*len(e.IDs)))
		ids = w.U64(ids, e.IDs...)
	}
	sections := map[int][]byte{12: w.names()}
	for bit, b := range w.Features {
		sections[bit] = b
	}
	size += int64(w.records.Len())
	var set uint64
	for bit := range sections {
		set |= 1 << bit
	}
	start := uint64(header + len(ids) + len(attrs))
	magic := []byte("PERFILE2")
	if w.Foreign {
		magic = []byte("2ELIFREP")
	}
	b := w.U64(magic, header, uint64(len(attrs)/len(w.Events)), uint64(header+len(ids)), uint64(len(attrs)), start, uint64(size), 0, 0)
	b = w.U64(b, set, 0, 0, 0)
	if _, err := out.Write(append(append(b, ids...), attrs...)); err != nil {
		return err
	}
	if _, err := out.Write(w.records.Bytes()); err != nil {
		return err
	}
	if err := more(out); err != nil {
		return err
	}
	at := start + uint64(size) + uint64(16*len(sections))
	var table, bodies []byte
	for bit := 0; bit < 64; bit++ {
		if s, ok := sections[bit]; ok {
			table = w.U64(table, at, uint64(len(s)))
			bodies = append(bodies, s...)
			at += uint64(len(s))
		}
	}
	_, err := out.Write(append(table, bodies...))
	return err
}

// names is the section EVENT_DESC.
func (w *Writer) names() []byte {
	b := w.U32(nil, uint32(len(w.Events)), uint32(len(w.attr(&perfdata.Attr{}))))
	for i := range w.Events {
		e := &w.Events[i]
		b = append(b, w.attr(&e.Attr)...)
		b = w.U32(b, uint32(len(e.IDs)))
		b = w.Text(b, e.Name)
		b = w.U64(b, e.IDs...)
	}
	return b
}

// Stream is the recording as perf record -o - writes it.
func (w *Writer) Stream() []byte {
	magic := []byte("PERFILE2")
	if w.Foreign {
		magic = []byte("2ELIFREP")
	}
	out := Writer{Foreign: w.Foreign}
	for i := range w.Events {
		e := &w.Events[i]
		out.Record(64, 0, w.U64(w.attr(&e.Attr), e.IDs...), nil)
	}
	out.Record(80, 0, append(w.U64(nil, 12), w.names()...), nil)
	b := append(w.U64(magic, 16), out.records.Bytes()...)
	return append(b, w.records.Bytes()...)
}

// Compressed is a copy of w whose records are in records of the given type, 81 or
// 83, of at most chunk bytes before compression, in one zstd stream without end.
func (w *Writer) Compressed(kind uint32, chunk int) (*Writer, error) {
	c := &Writer{Foreign: w.Foreign, AttrSize: w.AttrSize, Events: w.Events, Features: map[int][]byte{}}
	for bit, b := range w.Features {
		c.Features[bit] = b
	}
	var packed bytes.Buffer
	enc, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	for data := w.records.Bytes(); len(data) > 0; {
		n := min(chunk, len(data))
		if _, err := enc.Write(data[:n]); err != nil {
			return nil, err
		}
		if err := enc.Flush(); err != nil {
			return nil, err
		}
		data = data[n:]
		body := bytes.Clone(packed.Bytes())
		packed.Reset()
		if kind == 83 {
			size := uint64(len(body))
			body = append(w.U64(nil, size), append(body, make([]byte, -size&7)...)...)
		}
		c.Record(kind, 0, body, nil)
	}
	c.Features[27] = w.U32(nil, 1, 1, 1, 10, 4<<20) // COMPRESSED: version, zstd, level, ratio, buffer
	return c, nil
}
