// Package perfdata reads the files of perf record, at the speed of memory.
//
// # Input
//
// A perf.data file, a directory of perf record --threads, or a stream (perf
// record -o -), of either byte order, plain or compressed (-z), also cut short.
//
// # Output
//
// Its events, what its header tells of the machine, its records other than
// samples (Side), and its samples (Samples), in the order of the file.
//
// # Method
//
// The file is mapped. A first walk over the heads of records finds what is in it
// and where pieces of equal size begin, a second one decodes the samples of the
// pieces on as many processors as there are. Nothing is sorted: a reader who
// needs to know what a sample's address was at its time collects Side first and
// looks it up by the time. So no sample is ever held.
//
// The format is that of the kernel's linux/perf_event.h and of perf's
// tools/perf/Documentation/perf.data-file-format.txt.
//
// # Limits
//
// Records of types that are not known are counted (Unknown) where they are the
// kernel's; an unknown type of perf's own is an error, since it may hold samples
// as COMPRESSED does. No length of a file is trusted.
package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// Event is one event of a recording.
type Event struct {
	Name string // as perf names it; "" where the file does not say
	Attr Attr
	IDs  []uint64
	layout
}

// Has reports which parts of a Sample the event records.
func (e *Event) Has() Fields {
	is := func(bits uint64) bool { return e.Attr.SampleType&bits != 0 }
	return Fields{IP: is(sampleIP), Thread: is(sampleTID), Time: is(sampleTime), Addr: is(sampleAddr), CPU: is(sampleCPU),
		Period: is(samplePeriod), Latency: is(sampleWeight | sampleWeightStruct), Source: is(sampleDataSrc),
		Phys: is(samplePhysAddr), PageSize: is(sampleDataPageSize)}
}

// Fields says which parts of a sample there are.
type Fields struct {
	IP, Thread, Time, Addr, CPU, Period, Latency, Source, Phys, PageSize bool
}

// File is an open recording.
type File struct {
	Path   string
	Events []Event
	Info   Info
	// Cut is whether the recording did not come to its end: perf was killed, the
	// disk was full, or the file was copied in part.
	Cut bool
	// Unknown counts records of types that this package does not know, by type.
	Unknown map[uint32]uint64
	// Damaged counts samples whose length is not what their fields need.
	Damaged uint64
	// Progress is told before each piece of the file how many of all Samples has begun
	// with, by one caller at a time; nil is none.
	Progress func(begun, all int)

	order    order
	streams  []stream
	unmap    [][]byte
	ids      idTable
	trailer  int // of records other than samples, bytes
	timeAt   int // of the time, from the end of such a record; 0 if none
	spe      bool
	timeConv TimeConv

	listedSide []Side // of a Listed file
	listed     []Sample
}

// stream is a run of whole records.
type stream struct {
	data   []byte
	packed bool     // has compressed records
	pieces []uint64 // where pieces begin, for a plain one
	side   []uint64 // where the records are that Side reads, likewise
}

var (
	magic        = []byte("PERFILE2")
	magicForeign = []byte("2ELIFREP")
)

// Open opens the recording at path: a file, or a directory that perf record
// --threads wrote.
func Open(path string) (*File, error) {
	f := &File{Path: path, Unknown: map[uint32]uint64{}}
	if err := f.open(path); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *File) open(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return errors.Unwrap(err)
	}
	if !st.IsDir() {
		data, err := f.mapFile(path)
		if err != nil {
			return err
		}
		return f.parse(data)
	}
	data, err := f.mapFile(filepath.Join(path, "data"))
	if err != nil {
		return fmt.Errorf("not a directory of perf record --threads: %w", err)
	}
	more, err := filepath.Glob(filepath.Join(path, "data.[0-9]*"))
	if err != nil {
		return err
	}
	sort.Strings(more)
	var rest [][]byte
	for _, name := range more {
		b, err := f.mapFile(name)
		if err != nil {
			return err
		}
		rest = append(rest, b)
	}
	return f.parse(data, rest...)
}

// Spool reads a stream to its end into a file without a name in the directory for
// temporary files, and opens that: samples cannot be put down to objects before
// all allocations are known.
func Spool(name string, r io.Reader) (*File, error) {
	tmp, err := os.CreateTemp("", "numaopt-perf-*")
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	os.Remove(tmp.Name())
	if _, err := io.Copy(tmp, r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &File{Path: name, Unknown: map[uint32]uint64{}}
	data, err := f.mapOpen(tmp)
	if err == nil {
		err = f.parse(data)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Parse reads a recording that is in memory; the File refers to data.
func Parse(name string, data []byte, rest ...[]byte) (*File, error) {
	f := &File{Path: name, Unknown: map[uint32]uint64{}}
	if err := f.parse(data, rest...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *File) mapFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer file.Close()
	return f.mapOpen(file)
}

func (f *File) mapOpen(file *os.File) ([]byte, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() == 0 {
		return nil, nil
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("is not a file; give a stream on standard input (-)")
	}
	b, err := unix.Mmap(int(file.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping it: %w", err)
	}
	f.unmap = append(f.unmap, b)
	unix.Madvise(b, unix.MADV_SEQUENTIAL) //nolint:errcheck // advice
	return b, nil
}

// Traced is whether the samples are in a trace beside those of perf (Arm SPE).
func (f *File) Traced() bool { return f.spe }

// Close gives the mappings back; nothing that refers to the file's memory may be
// used after it.
func (f *File) Close() error {
	var first error
	for _, b := range f.unmap {
		if err := unix.Munmap(b); err != nil && first == nil {
			first = err
		}
	}
	f.unmap, f.streams = nil, nil
	return first
}

// parse reads the header of data and looks through its records and those of rest,
// further streams without a header.
func (f *File) parse(data []byte, rest ...[]byte) error {
	if len(data) == 0 {
		return fmt.Errorf("is empty: perf record ended before it wrote anything")
	}
	if len(data) < 16 {
		return fmt.Errorf("is too short (%d bytes) for a perf.data file", len(data))
	}
	switch {
	case bytes.HasPrefix(data, magic):
	case bytes.HasPrefix(data, magicForeign):
		f.order.foreign = true
	case bytes.HasPrefix(data, []byte("PERFFILE")):
		return fmt.Errorf("is a perf.data file of the first version (before Linux 3.1), which nobody reads any more")
	case isText(data):
		return fmt.Errorf("is text, not a perf.data file: numaopt reads what perf record writes, not the output of perf script (numaopt import perf.data)")
	default:
		return fmt.Errorf("is not a perf.data file (it begins with %q)", data[:8])
	}
	size := f.order.u64(data[8:])
	var err error
	switch {
	case size == 16:
		f.streams = []stream{{data: data[16:]}}
		err = f.streamHeader()
	case size >= 72 && size <= uint64(len(data)):
		err = f.fileHeader(data)
	default:
		return fmt.Errorf("is cut short or not a perf.data file: its header says that it has %d bytes", size)
	}
	if err != nil {
		return err
	}
	for _, b := range rest {
		f.streams = append(f.streams, stream{data: b})
	}
	if err := f.settle(); err != nil {
		return err
	}
	return f.index()
}

// isText guesses: the first kilobyte has letters, spaces and line ends only.
func isText(b []byte) bool {
	return strings.IndexFunc(string(b[:min(len(b), 1024)]), func(r rune) bool {
		return r < 32 && r != '\n' && r != '\t' && r != '\r' || r > 126
	}) < 0
}

// section is a piece of b by offset and size as the header has them.
func (f *File) section(b []byte, at int) ([]byte, error) {
	if at+16 > len(b) {
		return nil, fmt.Errorf("the header is cut short at byte %d", at)
	}
	offset, size := f.order.u64(b[at:]), f.order.u64(b[at+8:])
	if offset > uint64(len(b)) || size > uint64(len(b))-offset {
		return nil, fmt.Errorf("the section of %d bytes at %d that the header names at byte %d lies beyond the file's end (%d)", size, offset, at, len(b))
	}
	return b[offset : offset+size], nil
}

// fileHeader reads the header of a file: attrs, data, and the feature sections
// after the data.
func (f *File) fileHeader(b []byte) error {
	attrSize := f.order.u64(b[16:])
	attrs, err := f.section(b, 24)
	if err != nil {
		return err
	}
	if attrSize < attrMin+16 || attrSize > math.MaxInt32 || len(attrs) == 0 || len(attrs)%int(attrSize) != 0 {
		return fmt.Errorf("the header's %d bytes of events are no multiple of %d", len(attrs), attrSize)
	}
	for n := int(attrSize); len(attrs) > 0; attrs = attrs[n:] {
		a, err := parseAttr(attrs[:n-16], f.order)
		if err != nil {
			return err
		}
		ids, err := f.pointed(b, attrs[n-16:n])
		if err != nil {
			return err
		}
		f.addEvent(a, ids)
	}
	offset, size := f.order.u64(b[40:]), f.order.u64(b[48:])
	if offset > uint64(len(b)) {
		return fmt.Errorf("the records at byte %d that the header names lie beyond the file's end (%d)", offset, len(b))
	}
	end := offset + size
	if size == 0 || size > uint64(len(b))-offset {
		f.Cut, end = true, uint64(len(b)) // perf writes the size when it ends
	}
	f.streams = []stream{{data: b[offset:end]}}
	if f.Cut {
		return nil
	}
	if f.order.u64(b[8:]) < 104 {
		return nil // as it was before there were features
	}
	return f.features(b, int(end))
}

// pointed is the ids that the pair of offset and size in ref points to.
func (f *File) pointed(b, ref []byte) ([]uint64, error) {
	offset, size := f.order.u64(ref), f.order.u64(ref[8:])
	if offset > uint64(len(b)) || size > uint64(len(b))-offset {
		return nil, fmt.Errorf("the ids of an event lie beyond the file's end")
	}
	return f.words(b[offset : offset+size]), nil
}

func (f *File) words(b []byte) []uint64 {
	out := make([]uint64, 0, len(b)/8)
	for ; len(b) >= 8; b = b[8:] {
		out = append(out, f.order.u64(b))
	}
	return out
}

func (f *File) addEvent(a Attr, ids []uint64) {
	f.Events = append(f.Events, Event{Attr: a, IDs: ids, layout: newLayout(&a)})
}

// settle checks the events, once all are known, and makes the table of ids.
func (f *File) settle() error {
	if len(f.Events) == 0 {
		return fmt.Errorf("has no events")
	}
	if len(f.Events) > 1 {
		if err := agree(f.Events); err != nil {
			return err
		}
	}
	f.ids = newIDTable(f.Events)
	f.trailer, f.timeAt = trailer(&f.Events[0].Attr)
	return nil
}

// idTable finds an event by the id in a sample.
type idTable struct {
	first uint64
	dense []int16 // event of id first+i, -1 for none
	other map[uint64]int
}

func newIDTable(events []Event) idTable {
	t := idTable{first: math.MaxUint64, other: map[uint64]int{}}
	last := uint64(0)
	for i := range events {
		for _, id := range events[i].IDs {
			t.first, last = min(t.first, id), max(last, id)
			t.other[id] = i
		}
	}
	if len(t.other) == 0 || last-t.first >= 1<<20 || len(events) > math.MaxInt16 {
		return t
	}
	t.dense = make([]int16, last-t.first+1)
	for i := range t.dense {
		t.dense[i] = -1
	}
	for id, e := range t.other {
		t.dense[id-t.first] = int16(e)
	}
	return t
}

func (t *idTable) event(id uint64) (int, bool) {
	if at := id - t.first; at < uint64(len(t.dense)) {
		return int(t.dense[at]), t.dense[at] >= 0
	}
	e, ok := t.other[id]
	return e, ok
}
