package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// headBytes is the size of a record's head: type, misc, size.
const headBytes = 8

// pieceBytes is about the size of the pieces that processors decode samples in.
const pieceBytes = 4 << 20

// record is one record: body is what follows its head, after the data that some
// of perf's own have behind them.
type record struct {
	kind  uint32
	misc  uint16
	body  []byte
	after []byte
}

// errCut ends a walk whose stream ends within a record.
var errCut = errors.New("cut short")

// next splits the first record off b. It returns errCut where b is too short for
// it, and another error where its size cannot be.
func (f *File) next(b []byte) (record, []byte, error) {
	if len(b) < headBytes {
		return record{}, nil, errCut
	}
	var r record
	var size int
	r.kind, r.misc, size = f.order.head(b)
	switch {
	case size < headBytes:
		return r, nil, fmt.Errorf("a record of type %d says that it has %d bytes: the file is damaged", r.kind, size)
	case size > len(b):
		return r, nil, errCut
	}
	r.body, b = b[headBytes:size], b[size:]
	behind := uint64(0)
	switch {
	case r.kind == recAuxtrace && size >= auxtraceRecordBytes:
		behind = f.order.u64(r.body)
	case r.kind == recTracingData && len(r.body) >= 4:
		behind = (uint64(f.order.u32(r.body)) + 7) &^ 7
	case r.kind == recCompressed2 && len(r.body) >= 8: // its data is within the record, and padded
		n := f.order.u64(r.body)
		if n > uint64(len(r.body)-8) {
			return r, nil, fmt.Errorf("a compressed record of %d bytes says that it has %d: the file is damaged", size, n)
		}
		r.body = r.body[8 : 8+n]
	}
	if behind > uint64(len(b)) {
		return r, nil, errCut
	}
	r.after, b = b[:behind], b[behind:]
	return r, b, nil
}

// index looks through the heads of all records: what is compressed, where pieces
// begin, what is not known. Several processors do, each from where a record seems to
// begin; what they found is used where the walk before theirs ends there.
func (f *File) index() error {
	for i := range f.streams {
		s := &f.streams[i]
		starts := f.starts(s.data)
		walks := make([]walk, len(starts)-1)
		var wait sync.WaitGroup
		for k := range walks {
			wait.Go(func() { walks[k] = f.walk(s.data, starts[k], starts[k+1]) })
		}
		wait.Wait()
		for at := 0; at < len(s.data); {
			k, found := slices.BinarySearch(starts, at)
			if !found {
				walks[k-1] = f.walk(s.data, at, starts[k])
				k--
			}
			if err := f.take(s, &walks[k]); err != nil {
				return err
			}
			at = walks[k].end
		}
	}
	return nil
}

// walk is what was found between two places of a stream, the first of which is where a
// record begins.
type walk struct {
	pieces []uint64
	others []uint64 // where the records are that are no samples
	end    int      // of its last record
	err    error    // of the one behind that
}

const headsToBelieve = 64

// starts is where the processors' parts of a stream begin, as it seems, from 0 to its end:
// at heads of records from which many others follow.
func (f *File) starts(data []byte) []int {
	out := []int{0}
	part := max(len(data)/runtime.GOMAXPROCS(0), pieceBytes) &^ 7
	for near := part; near < len(data); near += part {
		for at := max(near, out[len(out)-1]+8); at < min(near+1<<16, len(data)); at += 8 {
			if f.follow(data[at:], headsToBelieve) {
				out = append(out, at)
				break
			}
		}
	}
	return append(out, len(data))
}

// follow reports whether b begins with the heads of n records, by their looks.
func (f *File) follow(b []byte, n int) bool {
	for ; n > 0 && len(b) >= headBytes; n-- {
		kind, _, size := f.order.head(b)
		if kind == 0 || kind > recLastUser || size < headBytes || size > len(b) {
			return false
		}
		b = b[size:]
	}
	return n == 0
}

// walk looks through the records of data that begin in [at, to).
func (f *File) walk(data []byte, at, to int) walk {
	w, mark := walk{pieces: []uint64{uint64(at)}}, at
	for at < to {
		if at-mark >= pieceBytes {
			mark = at
			w.pieces = append(w.pieces, uint64(at))
		}
		// The head of a sample is all there is to see of it: this loop runs at the speed of memory.
		if b := data[at:]; len(b) >= headBytes {
			if kind, _, n := f.order.head(b); kind == recSample && n >= headBytes && n <= len(b) {
				at += n
				continue
			}
		}
		_, rest, err := f.next(data[at:])
		if err != nil {
			w.err = err
			break
		}
		w.others = append(w.others, uint64(at))
		at = len(data) - len(rest)
	}
	w.end = at
	return w
}

// take adds what a walk found to what is known of its stream.
func (f *File) take(s *stream, w *walk) error {
	s.pieces = append(s.pieces, w.pieces...)
	for _, at := range w.others {
		r, _, err := f.next(s.data[at:])
		if err == nil {
			err = f.meet(&r)
		}
		if err != nil {
			return err
		}
		s.packed = s.packed || r.kind == recCompressed || r.kind == recCompressed2
		if isSide(r.kind) {
			s.side = append(s.side, at)
		}
	}
	switch {
	case w.err == errCut:
		f.Cut, s.data = true, s.data[:w.end]
	case w.err != nil:
		return fmt.Errorf("at byte %d of its records: %w", w.end, w.err)
	}
	return nil
}

// meet notes what a record tells of the file.
func (f *File) meet(r *record) error {
	switch {
	case r.kind > recLastUser:
		return unknown(r.kind)
	case recordNames[r.kind] == "":
		f.Unknown[r.kind]++
	case r.kind == recAuxtraceInfo && len(r.body) >= 4:
		f.spe = f.spe || f.order.u32(r.body) == auxtraceArmSPE
	case r.kind == recTimeConv && len(r.body) >= 24:
		f.timeConv = TimeConv{Shift: f.order.u64(r.body), Mult: f.order.u64(r.body[8:]), Zero: f.order.u64(r.body[16:])}
	}
	return nil
}

// others calls visit with every record of s that Side reads, in order, and perhaps with
// others.
func (f *File) others(s *stream, visit func(*record) error) error {
	if s.packed {
		return f.unpacked(s.data, visit)
	}
	for _, at := range s.side {
		r, _, err := f.next(s.data[at:])
		if err != nil {
			return err
		}
		if err := visit(&r); err != nil {
			return err
		}
	}
	return nil
}

// plain walks records that were walked before: their sizes are right.
func (f *File) plain(b []byte, visit func(*record) error) error {
	for len(b) > 0 {
		r, rest, err := f.next(b)
		if err == errCut {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(&r); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// unpacked walks the records of a stream with compressed ones. perf flushes its
// one zstd stream at the end of each, but a record may begin in one and end in the
// next.
func (f *File) unpacked(data []byte, visit func(*record) error) error {
	in := new(payload)
	dec, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		return err
	}
	defer dec.Close()
	var packed [][]byte
	if err := f.plain(data, func(r *record) error {
		if r.kind == recCompressed || r.kind == recCompressed2 {
			packed = append(packed, r.body)
			return nil
		}
		return visit(r)
	}); err != nil {
		return err
	}
	in.parts = packed
	return f.inflated(dec, visit)
}

// inflated walks the records that come out of dec.
func (f *File) inflated(dec io.Reader, visit func(*record) error) error {
	buf := make([]byte, 0, 1<<20)
	for {
		n, err := io.ReadFull(dec, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		b := buf
		for len(b) > 0 {
			r, rest, e := f.next(b)
			if e == errCut {
				break
			}
			if e != nil {
				return e
			}
			if e := visit(&r); e != nil {
				return e
			}
			b = rest
		}
		switch {
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF): // perf does not end its zstd stream
			f.Cut = f.Cut || len(b) > 0
			return nil
		case err != nil:
			return fmt.Errorf("its compressed records are damaged: %w", err)
		}
		if len(b) == cap(buf) {
			return fmt.Errorf("its compressed records are damaged: one is longer than any can be")
		}
		buf = append(buf[:0], b...)
	}
}

// payload reads parts one after the other.
type payload struct{ parts [][]byte }

func (p *payload) Read(to []byte) (int, error) {
	for len(p.parts) > 0 && len(p.parts[0]) == 0 {
		p.parts = p.parts[1:]
	}
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.parts[0])
	p.parts[0] = p.parts[0][n:]
	return n, nil
}

// Samples decodes all samples. It makes one visitor for each processor that takes
// part, by visitor(i) with i from 0 to less than workers, and calls it with the
// samples of the pieces that this processor took, each once, in no order; a Sample
// is the visitor's for the time of the call only. An error of a visitor ends it.
func (f *File) Samples(workers int, visitor func(worker int) func(*Sample) error) error {
	if f.listed != nil {
		visit := visitor(0)
		for i := range f.listed {
			if err := visit(&f.listed[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	jobs := f.jobs()
	workers = max(1, min(workers, len(jobs)))
	var (
		wait  sync.WaitGroup
		lock  sync.Mutex
		first error
		taken int
	)
	take := func() (job, bool) {
		lock.Lock()
		defer lock.Unlock()
		if taken == len(jobs) || first != nil {
			return job{}, false
		}
		if f.Progress != nil {
			f.Progress(taken, len(jobs))
		}
		taken++
		return jobs[taken-1], true
	}
	for w := range workers {
		visit := visitor(w)
		wait.Go(func() {
			d := newDecoder(f, visit)
			for {
				j, more := take()
				if !more {
					break
				}
				if err := d.run(j); err != nil {
					lock.Lock()
					first = errors.Join(first, err)
					lock.Unlock()
				}
			}
			lock.Lock()
			f.Damaged += d.damaged
			lock.Unlock()
		})
	}
	wait.Wait()
	return first
}

// Bytes is the size of its records.
func (f *File) Bytes() int {
	n := 0
	for i := range f.streams {
		n += len(f.streams[i].data)
	}
	return n
}

// job is a piece of a plain stream, or a stream that has to be unpacked.
type job struct {
	data   []byte
	packed bool
}

func (f *File) jobs() []job {
	var out []job
	for _, s := range f.streams {
		if s.packed {
			out = append(out, job{s.data, true})
			continue
		}
		for i, at := range s.pieces {
			end := uint64(len(s.data))
			if i+1 < len(s.pieces) {
				end = s.pieces[i+1]
			}
			if at < end {
				out = append(out, job{s.data[at:end], false})
			}
		}
	}
	return out
}

// decoder is one processor's part in Samples.
type decoder struct {
	f       *File
	visit   func(*Sample) error
	samples []Sample // the latest of each event: the same fields are filled in every one
	traced  Sample   // the latest of a trace
	many    bool     // events
	idAt    int
	damaged uint64
}

func newDecoder(f *File, visit func(*Sample) error) *decoder {
	d := &decoder{f: f, visit: visit, samples: make([]Sample, len(f.Events)), many: len(f.Events) > 1, idAt: f.Events[0].layout.id}
	for i := range d.samples {
		d.samples[i].Event = i
	}
	return d
}

func (d *decoder) run(j job) error {
	if j.packed {
		return d.f.unpacked(j.data, d.record)
	}
	f, b := d.f, j.data
	for len(b) >= headBytes {
		if kind, misc, n := f.order.head(b); kind == recSample && n >= headBytes && n <= len(b) {
			if err := d.decode(misc, b[headBytes:n]); err != nil {
				return err
			}
			b = b[n:]
			continue
		}
		r, rest, err := f.next(b)
		if err != nil {
			return nil // the index ended here too
		}
		if err := d.record(&r); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

func (d *decoder) record(r *record) error {
	switch {
	case r.kind == recSample:
		return d.decode(r.misc, r.body)
	case r.kind == recAuxtrace && d.f.spe:
		return d.f.speSamples(r, &d.traced, d.visit)
	case r.kind > recLastUser:
		return unknown(r.kind)
	}
	return nil
}

// unknown refuses a type of perf's own: it may hold samples as COMPRESSED does.
func unknown(kind uint32) error {
	return fmt.Errorf("has records of type %d, which this version of numaopt does not know and which may hold samples: it is of a newer perf; record it without compression (no -z), or with an older perf", kind)
}

// decode takes a sample. What follows its body in memory, up to the slice's capacity, may
// be read, and is masked.
func (d *decoder) decode(misc uint16, body []byte) error {
	event := 0
	if d.many {
		if d.idAt+8 > len(body) {
			d.damaged++
			return nil
		}
		var known bool
		if event, known = d.f.ids.event(d.f.order.u64(body[d.idAt:])); !known {
			d.damaged++
			return nil
		}
	}
	s, l := &d.samples[event], &d.f.Events[event].layout
	s.Mode = misc & miscCPUMode
	if l.window.fits && len(body) >= l.size && cap(body) >= windowBytes && !d.f.order.foreign {
		l.window.read((*[windowBytes]byte)(body[:windowBytes]), s)
	} else if !l.decode(body, d.f.order, s) {
		d.damaged++
		return nil
	}
	return d.visit(s)
}

// sideTime is the time of a record other than a sample; 0 if it has none.
func (f *File) sideTime(body []byte) uint64 {
	if f.timeAt == 0 || len(body) < f.timeAt {
		return 0
	}
	return f.order.u64(body[len(body)-f.timeAt:])
}

// withoutTrailer is the body of such a record without what all of them end with.
func (f *File) withoutTrailer(body []byte) []byte {
	return body[:max(0, len(body)-f.trailer)]
}

func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
