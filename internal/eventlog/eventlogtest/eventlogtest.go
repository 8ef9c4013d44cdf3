// Package eventlogtest writes logs as the runtime does, for tests.
package eventlogtest

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"
)

// Chunk is the size of a thread's piece, smaller than the runtime's so that tests
// have several.
const Chunk = 4096

// Writer makes a log. Its methods are the runtime's events, in any order of time.
type Writer struct {
	PID   int
	Lost  uint64
	Small []Vote

	chunks [][]byte
	of     map[uint32]int // thread's present chunk
}

// Vote is a page of small allocations of a site.
type Vote struct {
	Page uint64
	Site uint32
}

var le = binary.LittleEndian

// Op writes any record.
func (w *Writer) Op(tid uint32, time uint64, op uint16, args [5]uint64, payload ...byte) {
	n := (56 + len(payload) + 7) &^ 7
	b := make([]byte, n)
	le.PutUint32(b, uint32(n))
	le.PutUint16(b[4:], op)
	le.PutUint64(b[8:], time)
	for i, a := range args {
		le.PutUint64(b[16+8*i:], a)
	}
	copy(b[56:], payload)
	if w.of == nil {
		w.of = map[uint32]int{}
	}
	i, ok := w.of[tid]
	if !ok || len(w.chunks[i])+n > Chunk {
		i = len(w.chunks)
		w.of[tid] = i
		w.chunks = append(w.chunks, le.AppendUint64(nil, uint64(tid)))
	}
	w.chunks[i] = append(w.chunks[i], b...)
}

// Hello begins a program: what other threads were is over.
func (w *Writer) Hello(tid uint32, time uint64) {
	w.of = nil
	w.Op(tid, time, 1, [5]uint64{4})
}

// Forked begins a child that was forked at a time, 0 for just now.
func (w *Writer) Forked(tid uint32, time uint64, parent int, forked uint64) {
	w.of = nil
	w.Op(tid, time, 21, [5]uint64{uint64(parent), forked})
}

// Thread begins a thread; cpu -1 is not bound.
func (w *Writer) Thread(tid uint32, time uint64, rank, cpu int, start, stackLo, stackHi uint64) {
	p := le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, start), stackLo), stackHi)
	w.Op(tid, time, 6, [5]uint64{uint64(rank), uint64(cpu)}, append(p, make([]byte, 8)...)...)
}

// Region enters a parallel region, or none (0).
func (w *Writer) Region(tid uint32, time, fn uint64, master bool, instance, row uint64) {
	w.Op(tid, time, 8, [5]uint64{fn, flag(master), instance, row})
}

// Loop enters a worksharing loop, or none (0).
func (w *Writer) Loop(tid uint32, time, site uint64, about uint64, master bool, last uint64) {
	w.Op(tid, time, 18, [5]uint64{site, about, flag(master), last})
}

// Site names a call stack.
func (w *Writer) Site(tid uint32, time uint64, id int, frames ...uint64) {
	var p []byte
	for _, f := range frames {
		p = le.AppendUint64(p, f)
	}
	w.Op(tid, time, 9, [5]uint64{uint64(id), uint64(len(frames))}, p...)
}

// Alloc begins an object; kind is 1 for the heap, 2 for a mapping.
func (w *Writer) Alloc(tid uint32, time, addr, bytes uint64, site, rank, ordinal int, kind byte) {
	p := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, uint32(site)), uint32(rank)), uint32(ordinal))
	w.Op(tid, time, 10, [5]uint64{addr, bytes}, append(p, kind, 0, 0, 0)...)
}

// Free ends one.
func (w *Writer) Free(tid uint32, time, addr uint64) { w.Op(tid, time, 11, [5]uint64{addr}) }

// Homes names the nodes of pages from addr on; 255 is none.
func (w *Writer) Homes(tid uint32, time, addr uint64, nodes ...byte) {
	w.Op(tid, time, 20, [5]uint64{addr, uint64(len(nodes))}, nodes...)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Bytes is the file.
func (w *Writer) Bytes() []byte {
	const head = 4096
	slots := 16
	b := make([]byte, head+slots*16)
	copy(b, "numaopt-log\n")
	le.PutUint32(b[16:], 1)
	le.PutUint32(b[20:], uint32(w.PID))
	le.PutUint32(b[24:], head)
	le.PutUint32(b[28:], Chunk)
	le.PutUint64(b[40:], w.Lost)
	le.PutUint64(b[48:], head)
	le.PutUint32(b[56:], uint32(slots))
	for i, v := range w.Small {
		at := head + (2*i+1)*16 // with free slots between
		le.PutUint64(b[at:], v.Page)
		le.PutUint32(b[at+8:], v.Site)
	}
	for _, c := range w.chunks {
		b = append(b, append(c, make([]byte, Chunk-len(c))...)...)
	}
	le.PutUint64(b[32:], uint64(len(b)))
	return b
}

// File writes the log below prefix.
func (w *Writer) File(t testing.TB, prefix string) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("%s.%d", prefix, w.PID), w.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
