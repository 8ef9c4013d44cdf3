// Package eventlog reads what the runtime writes down of a program that runs by
// itself: allocations, threads, parallel regions and loops, homes of pages, each
// with its time, for samples to be merged with.
//
// # Input
//
// The files PREFIX.PID, one for each process (struct nmo_log_head and what follows
// it in runtime-c/plugin/wire.h). A process may still run, or have been killed at
// any moment.
//
// # Output
//
// A History: objects with the time that they were there, threads by their system
// ids, and in which loop each of them was when. Times are CLOCK_MONOTONIC in
// nanoseconds, as those of samples that perf recorded with that clock.
//
// # Limits
//
// A record that was being written when the process ended ends its piece of 64 KiB.
// A log that ran full says how many records are lost.
package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"numaopt/internal/arena"
)

// Version is the format that this package reads.
const Version = 1

const (
	magic       = "numaopt-log\n\x00\x00\x00\x00"
	headBytes   = 80
	chunkHead   = 8
	recordBytes = 56
	smallBytes  = 16
	maxChunk    = 1 << 24
)

// Op is what a record tells (enum nmo_op).
type Op uint16

// The operations that matter here; wire.h says what their arguments are.
const (
	opHello       Op = 1
	opTracker     Op = 2
	opThreadStart Op = 6
	opThreadEnd   Op = 7
	opRegion      Op = 8
	opSite        Op = 9
	opAlloc       Op = 10
	opFree        Op = 11
	opBind        Op = 12
	opMove        Op = 13
	opNote        Op = 14
	opPinned      Op = 15
	opThreadMoved Op = 16
	opDynamic     Op = 17
	opLoop        Op = 18
	opPrefer      Op = 19
	opHomes       Op = 20
	opForked      Op = 21
)

// record is one of a thread's.
type record struct {
	op      Op
	time    uint64
	args    [5]uint64
	payload []byte
}

// Log is the log of one process. It is read piece by piece: the file is large and has
// holes, which are not to be looked at through a mapping.
type Log struct {
	PID  int
	Lost uint64 // records that found no room

	path    string
	r       io.ReaderAt
	head    uint64 // file offset of the first chunk of the latest program image
	used    uint64
	chunk   uint64
	smallAt uint64
	slots   uint64
	file    *os.File
}

// FormatError says where a log is not what it should be.
type FormatError struct {
	Path, Why string
}

func (e *FormatError) Error() string { return e.Path + ": " + e.Why }

// Open opens the log of a process. An error is of the file, or a *FormatError.
func Open(prefix string, pid int) (*Log, error) {
	path := fmt.Sprintf("%s.%d", prefix, pid)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		var l *Log
		if l, err = parse(path, f, uint64(st.Size())); err == nil {
			l.file = f
			return l, nil
		}
	}
	f.Close()
	return nil, err
}

var le = binary.LittleEndian

// parse reads the head of a log of size bytes.
func parse(path string, r io.ReaderAt, size uint64) (*Log, error) {
	var b [headBytes]byte
	if size < headBytes {
		return nil, &FormatError{path, "it ends in its head: the program was killed when it began"}
	}
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return nil, err
	}
	if string(b[:16]) != magic {
		return nil, &FormatError{path, "it is no log of numaopt's runtime"}
	}
	if v := le.Uint32(b[16:]); v != Version {
		return nil, &FormatError{path, fmt.Sprintf("version %d, this numaopt reads %d: rebuild the runtime", v, Version)}
	}
	l := &Log{PID: int(le.Uint32(b[20:])), Lost: le.Uint64(b[40:]), path: path, r: r,
		chunk: uint64(le.Uint32(b[28:])), used: min(le.Uint64(b[32:]), size), smallAt: le.Uint64(b[48:]), slots: uint64(le.Uint32(b[56:]))}
	if l.chunk < 4096 || l.chunk > maxChunk || l.smallAt > size || l.slots > (size-l.smallAt)/smallBytes {
		return nil, &FormatError{path, "its head is damaged"}
	}
	l.head = l.smallAt + l.slots*smallBytes
	return l, l.latestImage()
}

// Close closes the file.
func (l *Log) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

// latestImage leaves out what the process was before it became another program: by
// then its other threads have ended, so that chunks from the one with the last
// greeting on are all the new program's. A forked child may find the log of a process
// that had its number before: it begins anew, too.
func (l *Log) latestImage() error {
	last := l.head
	err := l.chunks(func(at uint64, _ uint32, b []byte) {
		each(b, func(r *record) {
			if r.op == opHello || r.op == opForked {
				last = at
			}
		})
	})
	l.head = last
	return err
}

// chunks calls do with every chunk, in the order in which threads took them; b is do's
// until it returns.
func (l *Log) chunks(do func(at uint64, tid uint32, b []byte)) error {
	buf := make([]byte, l.chunk)
	for at := l.head; at+chunkHead <= l.used; at += l.chunk {
		b := buf[:min(l.chunk, l.used-at)]
		if _, err := l.r.ReadAt(b, int64(at)); err != nil {
			return fmt.Errorf("%s: %w", l.path, err)
		}
		if tid := le.Uint32(b); tid != 0 {
			do(at, tid, b[chunkHead:])
		}
	}
	return nil
}

// each calls do with the records of a chunk.
func each(b []byte, do func(*record)) {
	var r record
	for len(b) >= recordBytes {
		n := le.Uint32(b)
		if n < recordBytes || n%8 != 0 || uint64(n) > uint64(len(b)) {
			return
		}
		r.op, r.time, r.payload = Op(le.Uint16(b[4:])), le.Uint64(b[8:]), b[recordBytes:n]
		for i := range r.args {
			r.args[i] = le.Uint64(b[16+8*i:])
		}
		do(&r)
		b = b[n:]
	}
}

// all calls do with every record; those of one thread come in their order.
func (l *Log) all(do func(tid uint32, r *record)) error {
	return l.chunks(func(_ uint64, tid uint32, b []byte) {
		each(b, func(r *record) { do(tid, r) })
	})
}

// small is the pages that have small allocations, and the sites that most of them are of.
func (l *Log) small() ([]arena.SmallVote, error) {
	var out []arena.SmallVote
	const piece = 4096
	buf := make([]byte, piece*smallBytes)
	for n := uint64(0); n < l.slots; n += piece {
		b := buf[:min(piece, l.slots-n)*smallBytes]
		if _, err := l.r.ReadAt(b, int64(l.smallAt+n*smallBytes)); err != nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
		for ; len(b) >= smallBytes; b = b[smallBytes:] {
			if page := le.Uint64(b); page != 0 {
				out = append(out, arena.SmallVote{Page: page, Site: int(le.Uint32(b[8:]))})
			}
		}
	}
	return out, nil
}

// text is a payload that is a string.
func text(b []byte) string {
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return string(b)
}
