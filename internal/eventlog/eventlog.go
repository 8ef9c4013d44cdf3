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
	"os"

	"golang.org/x/sys/unix"
)

// Version is the format that this package reads.
const Version = 1

const (
	magic       = "numaopt-log\n\x00\x00\x00\x00"
	headBytes   = 80
	chunkHead   = 8
	recordBytes = 56
	smallBytes  = 16
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

// Log is the log of one process. It is mapped; Close ends that, and what was read
// from it stays valid.
type Log struct {
	PID  int
	Lost uint64 // records that found no room

	path   string
	data   []byte
	head   uint64 // file offset of the first chunk of the latest program image
	used   uint64
	chunk  uint64
	small  []byte
	mapped bool
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
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < headBytes {
		return nil, &FormatError{path, "it ends in its head: the program was killed when it began"}
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	l, err := parse(path, data)
	if err != nil {
		unix.Munmap(data) //nolint:errcheck // it was mapped above
		return nil, err
	}
	l.mapped = true
	return l, nil
}

var le = binary.LittleEndian

// parse reads the head; data stays in use.
func parse(path string, data []byte) (*Log, error) {
	if len(data) < headBytes || string(data[:16]) != magic {
		return nil, &FormatError{path, "it is no log of numaopt's runtime"}
	}
	if v := le.Uint32(data[16:]); v != Version {
		return nil, &FormatError{path, fmt.Sprintf("version %d, this numaopt reads %d: rebuild the runtime", v, Version)}
	}
	size := uint64(len(data))
	smallAt, slots := le.Uint64(data[48:]), uint64(le.Uint32(data[56:]))
	l := &Log{PID: int(le.Uint32(data[20:])), Lost: le.Uint64(data[40:]), path: path, data: data,
		chunk: uint64(le.Uint32(data[28:])), used: min(le.Uint64(data[32:]), size)}
	if l.chunk < 4096 || smallAt > size || slots > (size-smallAt)/smallBytes {
		return nil, &FormatError{path, "its head is damaged"}
	}
	l.small = data[smallAt : smallAt+slots*smallBytes]
	l.head = smallAt + slots*smallBytes
	l.latestImage()
	return l, nil
}

// Close unmaps the file.
func (l *Log) Close() {
	if l.mapped {
		unix.Munmap(l.data) //nolint:errcheck // it was mapped by Open
		l.data, l.small = nil, nil
	}
}

// latestImage leaves out what the process was before it became another program: by
// then its other threads have ended, so that chunks from the one with the last
// greeting on are all the new program's.
func (l *Log) latestImage() {
	last := l.head
	l.chunks(func(at uint64, _ uint32, b []byte) {
		each(b, func(r *record) {
			if r.op == opHello {
				last = at
			}
		})
	})
	l.head = last
}

// chunks calls do with every chunk, in the order in which threads took them.
func (l *Log) chunks(do func(at uint64, tid uint32, b []byte)) {
	for at := l.head; at+chunkHead <= l.used; at += l.chunk {
		b := l.data[at:min(at+l.chunk, l.used)]
		if tid := le.Uint32(b); tid != 0 {
			do(at, tid, b[chunkHead:])
		}
	}
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
func (l *Log) all(do func(tid uint32, r *record)) {
	l.chunks(func(_ uint64, tid uint32, b []byte) {
		each(b, func(r *record) { do(tid, r) })
	})
}

// EachSmall calls do with every page that has small allocations, and the site that
// most of them are of.
func (l *Log) EachSmall(do func(page uint64, site int)) {
	for b := l.small; len(b) >= smallBytes; b = b[smallBytes:] {
		if page := le.Uint64(b); page != 0 {
			do(page, int(le.Uint32(b[8:])))
		}
	}
}

// text is a payload that is a string.
func text(b []byte) string {
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return string(b)
}
