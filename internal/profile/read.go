package profile

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"numaopt/internal/ident"
	"numaopt/internal/topo"
)

// ReadFile reads the profile at path. The error names the path.
func ReadFile(path string) (*Profile, error) {
	p, _, err := ReadFileSum(path)
	return p, err
}

// ReadFileSum reads the profile at path and returns with it the checksum of the
// file, in hex: the name by which plans and baselines refer to a profile.
func ReadFileSum(path string) (*Profile, string, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("read profile: %w", err)
	}
	p, err := parse(file)
	if err != nil {
		return nil, "", fmt.Errorf("read profile %s: %w", path, err)
	}
	return p, hex.EncodeToString(file[len(file)-sumBytes:]), nil
}

// Read reads one file from r to its end. What it returns passes Check.
func Read(r io.Reader) (*Profile, error) {
	file, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return parse(file)
}

func parse(file []byte) (*Profile, error) {
	header, columns, err := sections(file)
	if err != nil {
		return nil, err
	}
	p := new(Profile)
	if err := readHeader(header, p); err != nil {
		return nil, err
	}
	version := binary.LittleEndian.Uint32(file[len(magic):])
	if version < 3 {
		for i := range p.Regions {
			p.Regions[i].Sweep = 0
		}
	}
	if err := readColumns(columns, p, version); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, &FormatError{Part: "contents", Err: fmt.Errorf("%w: %w", ErrDamaged, err)}
	}
	return p, nil
}

// sections returns the two compressed sections after holding every length
// against the bytes that are there, and all of it against the checksum.
func sections(file []byte) (header, columns []byte, err error) {
	bad := func(part string, offset int, err error) error {
		return &FormatError{Part: part, Offset: int64(offset), Err: err}
	}
	n := min(len(file), len(magic))
	if string(file[:n]) != magic[:n] || n == 0 {
		return nil, nil, bad("prefix", 0, ErrForeign)
	}
	if len(file) >= len(magic)+4 {
		if v := binary.LittleEndian.Uint32(file[len(magic):]); v > Version {
			return nil, nil, bad("prefix", len(magic), fmt.Errorf("format %d, this numaopt reads up to %d: %w", v, Version, ErrVersion))
		} else if v == 0 {
			return nil, nil, bad("prefix", len(magic), ErrDamaged)
		}
	}
	if len(file) < prefixBytes+sumBytes {
		return nil, nil, bad("prefix", len(file), ErrTruncated)
	}
	h := binary.LittleEndian.Uint64(file[len(magic)+4:])
	c := binary.LittleEndian.Uint64(file[len(magic)+12:])
	room := uint64(len(file) - prefixBytes - sumBytes)
	switch {
	case h > 1<<62 || c > 1<<62:
		return nil, nil, bad("prefix", len(magic)+4, ErrDamaged)
	case h+c > room:
		return nil, nil, bad("prefix", len(magic)+4, fmt.Errorf("%d bytes are missing: %w", h+c-room, ErrTruncated))
	case h+c < room:
		return nil, nil, bad("prefix", len(magic)+4, fmt.Errorf("%d bytes too many: %w", room-h-c, ErrDamaged))
	}
	body := len(file) - sumBytes
	if sum := sha256.Sum256(file[:body]); !bytes.Equal(sum[:], file[body:]) {
		return nil, nil, bad("checksum", body, ErrDamaged)
	}
	cut := prefixBytes + int(h)
	return file[prefixBytes:cut], file[cut:body], nil
}

// maxHeader bounds the JSON: names and numbers of objects, sites and regions.
const maxHeader = 1 << 30

func readHeader(section []byte, p *Profile) error {
	z, err := newUnpacker(section)
	if err != nil {
		return &FormatError{Part: "header", Err: err}
	}
	defer z.Close()
	text, err := io.ReadAll(io.LimitReader(z, maxHeader+1))
	if err != nil || len(text) > maxHeader {
		return &FormatError{Part: "header", Err: errors.Join(ErrDamaged, err)}
	}
	if err := json.Unmarshal(text, p); err != nil {
		return &FormatError{Part: "header", Err: fmt.Errorf("%w: %w", ErrDamaged, err)}
	}
	return nil
}

// UnmarshalJSON fills in what version 1 did not have.
func (r *Region) UnmarshalJSON(text []byte) error {
	type plain Region
	p := plain{Site: ident.Code{Module: -1}}
	err := json.Unmarshal(text, &p)
	*r = Region(p)
	return err
}

// newUnpacker bounds what a frame may claim before it has shown its data; Write
// uses windows of 8 MiB.
func newUnpacker(section []byte) (*zstd.Decoder, error) {
	return zstd.NewReader(bytes.NewReader(section), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(16<<20), zstd.WithDecoderLowmem(true))
}

// readColumns reads the tables that files of a version have.
func readColumns(section []byte, p *Profile, version uint32) error {
	z, err := newUnpacker(section)
	if err != nil {
		return &FormatError{Part: "pages", Err: err}
	}
	defer z.Close()
	c := &columnReader{r: bufio.NewReaderSize(z, 1<<16)}
	setRow := setRow
	if version < 3 {
		setRow = setRow[:len(setRow)-2]
	}
	p.Pages = readTable(c, "pages", setPage, nil)
	p.Rows = readTable(c, "rows", setRow, setRowCount)
	if version >= 4 {
		p.Latencies = readTable(c, "latencies", setLatency, setLatencyCount)
		p.Lines = readTable(c, "lines", setLine, setLineCount)
	}
	if version >= 5 {
		p.CodeUses = readTable(c, "code", setCode, setCodeCount)
		p.Intervals = readTable(c, "intervals", setInterval, setIntervalCount)
	}
	c.end()
	return c.err
}

// readTable is the mirror of writeTable. The first column is read before room is made
// for the entries: there are as many as it has values.
func readTable[T any](c *columnReader, part string, signed []func(*T, int64), counts []func(*T, uint64)) []T {
	c.part = part
	const chunk = 1 << 16
	var first [][]int64 // chunks: one that grows is copied again and again
	total := 0
	c.signed(c.count(), func(i int, v int64) {
		if total = i + 1; i%chunk == 0 {
			first = append(first, make([]int64, 0, chunk))
		}
		first[i/chunk] = append(first[i/chunk], v)
	})
	if c.err != nil || total == 0 {
		return nil
	}
	list := make([]T, total)
	for k, values := range first {
		for i, v := range values {
			signed[0](&list[k*chunk+i], v)
		}
	}
	n := uint64(total)
	for _, set := range signed[1:] {
		c.signed(n, func(i int, v int64) { set(&list[i], v) })
	}
	for _, set := range counts {
		c.unsigned(n, func(i int, v uint64) { set(&list[i], v) })
	}
	c.entries = len(list)
	return list
}

var setPage = []func(*Page, int64){
	func(p *Page, v int64) { p.Object = int(v) },
	func(p *Page, v int64) { p.Index = int(v) },
	func(p *Page, v int64) { p.Home = topo.NodeID(v) },
	func(p *Page, v int64) { p.Thread = int(v) },
	func(p *Page, v int64) { p.Region = int(v) },
	func(p *Page, v int64) { p.Place = int(v) },
	func(p *Page, v int64) { p.Serial = v != 0 },
}

var setRow = []func(*Row, int64){
	func(r *Row, v int64) { r.Page = index(v) },
	func(r *Row, v int64) { r.Thread = index(v) },
	func(r *Row, v int64) { r.Region = index(v) },
	func(r *Row, v int64) { r.Op = Op(min(uint64(v), 255)) },
	func(r *Row, v int64) { r.Level = Level(min(uint64(v), 255)) },
	func(r *Row, v int64) { r.First = uint8(min(uint64(v), SweepParts)) },
	func(r *Row, v int64) { r.Last = uint8(min(uint64(v), SweepParts)) },
}

var setRowCount = []func(*Row, uint64){
	func(r *Row, v uint64) { r.Count = v },
	func(r *Row, v uint64) { r.Latency = v },
}

var setLatency = []func(*Latency, int64){
	func(l *Latency, v int64) { l.Object = index(v) },
	func(l *Latency, v int64) { l.Region = index(v) },
	func(l *Latency, v int64) { l.Served = Served(min(uint64(v), NumServed)) },
	func(l *Latency, v int64) { l.From = topo.NodeID(v) },
	func(l *Latency, v int64) { l.To = topo.NodeID(v) },
	func(l *Latency, v int64) { l.Bucket = index(v) },
}

var setLatencyCount = []func(*Latency, uint64){
	func(l *Latency, v uint64) { l.Samples = v },
	func(l *Latency, v uint64) { l.Accesses = v },
	func(l *Latency, v uint64) { l.Cycles = v },
}

var setLine = []func(*LineUse, int64){
	func(l *LineUse, v int64) { l.Object = index(v) },
	func(l *LineUse, v int64) { l.Offset = v },
	func(l *LineUse, v int64) { l.Node = topo.NodeID(v) },
	func(l *LineUse, v int64) { l.Region = index(v) },
	func(l *LineUse, v int64) { l.Place = indexOr(v, -2) },
}

var setLineCount = []func(*LineUse, uint64){
	func(l *LineUse, v uint64) { l.Written = v },
	func(l *LineUse, v uint64) { l.Read = v },
	func(l *LineUse, v uint64) { l.Loads = v },
	func(l *LineUse, v uint64) { l.Stores = v },
	func(l *LineUse, v uint64) { l.HITM = v },
}

var setCode = []func(*CodeUse, int64){
	func(u *CodeUse, v int64) { u.Code = index(v) },
	func(u *CodeUse, v int64) { u.Object = index(v) },
	func(u *CodeUse, v int64) { u.Region = index(v) },
	func(u *CodeUse, v int64) { u.Op = Op(min(uint64(v), 255)) },
}

var setCodeCount = []func(*CodeUse, uint64){
	func(u *CodeUse, v uint64) { u.Local = v },
	func(u *CodeUse, v uint64) { u.Remote = v },
	func(u *CodeUse, v uint64) { u.Unknown = v },
	func(u *CodeUse, v uint64) { u.Latency = v },
	func(u *CodeUse, v uint64) { u.Loads = v },
}

var setInterval = []func(*Interval, int64){
	func(t *Interval, v int64) { t.Thread = index(v) },
	func(t *Interval, v int64) { t.At = index(v) },
	func(t *Interval, v int64) { t.Region = index(v) },
	func(t *Interval, v int64) { t.Home = topo.NodeID(v) },
}

var setIntervalCount = []func(*Interval, uint64){
	func(t *Interval, v uint64) { t.Count = v },
	func(t *Interval, v uint64) { t.Work = v },
}

// index is v; -1, which no check lets pass, where it is too great for an index.
func index(v int64) int32 { return indexOr(v, -1) }

// indexOr is v, or otherwise where v is too great for an index.
func indexOr(v int64, otherwise int32) int32 {
	if v != int64(int32(v)) {
		return otherwise
	}
	return int32(v)
}

// columnReader reads varints and remembers the first error. Slices grow with
// the values that are there, never by a count that the file claims.
type columnReader struct {
	r       *bufio.Reader
	part    string
	entries int // of the latest table
	err     error
}

func (c *columnReader) fail(i int, err error) {
	if c.err == nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = ErrTruncated
		}
		c.err = &FormatError{Part: c.part, Offset: int64(i), Err: err}
	}
}

// count returns a number of entries; 0 after an error.
func (c *columnReader) count() uint64 {
	if c.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		c.fail(0, err)
		return 0
	}
	return n
}

func (c *columnReader) signed(n uint64, set func(int, int64)) {
	last := int64(0)
	c.each(n, func(at int, values []uint64) {
		for i, v := range values {
			last += int64(v>>1) ^ -int64(v&1) // zigzag, as binary.Varint
			set(at+i, last)
		}
	})
}

func (c *columnReader) unsigned(n uint64, set func(int, uint64)) {
	c.each(n, func(at int, values []uint64) {
		for i, v := range values {
			set(at+i, v)
		}
	})
}

// each reads n values, some at a time: one at a time from c.r takes four times as long.
// While they are used the next ones are unpacked.
func (c *columnReader) each(n uint64, use func(at int, values []uint64)) {
	if c.err != nil {
		return
	}
	batches, free := make(chan batch), make(chan []uint64, 2)
	for range cap(free) {
		free <- make([]uint64, min(n, 4096))
	}
	go c.unpack(n, batches, free)
	at := 0
	for b := range batches {
		use(at, b.values)
		if at += len(b.values); b.err != nil && uint64(at) < n {
			c.fail(at, b.err)
		}
		free <- b.values[:cap(b.values)]
	}
}

// batch is some values of a column, and why there are no more.
type batch struct {
	values []uint64
	err    error
}

// unpack sends n values, or as many as there are, in memory of free.
func (c *columnReader) unpack(n uint64, batches chan<- batch, free <-chan []uint64) {
	defer close(batches)
	for n > 0 {
		values := <-free
		k, err := c.decode(values[:min(n, uint64(len(values)))])
		n -= uint64(k)
		batches <- batch{values[:k], err}
		if err != nil && n > 0 {
			return
		}
	}
}

// decode fills values from the buffer, and returns how many it held.
func (c *columnReader) decode(values []uint64) (n int, err error) {
	_, err = c.r.Peek(binary.MaxVarintLen64) // fills the buffer
	window, _ := c.r.Peek(c.r.Buffered())
	at := 0
	for n < len(values) && (at+binary.MaxVarintLen64 <= len(window) || err != nil && at < len(window)) {
		v, k := uint64(window[at]), 1
		if v >= 0x80 {
			v, k = binary.Uvarint(window[at:])
		}
		if k <= 0 {
			err = cmp.Or(err, errLong)
			break
		}
		values[n] = v
		n, at = n+1, at+k
	}
	c.r.Discard(at) //nolint:errcheck // it is there
	return n, err
}

var errLong = fmt.Errorf("a number of more than 64 bits: %w", ErrDamaged)

// end wants the end of the section.
func (c *columnReader) end() {
	if c.err != nil {
		return
	}
	if _, err := c.r.ReadByte(); err == nil {
		c.fail(c.entries, fmt.Errorf("data after the last column: %w", ErrDamaged))
	} else if err != io.EOF {
		c.fail(c.entries, err)
	}
}
