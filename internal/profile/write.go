package profile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"numaopt/internal/safefile"
)

// WriteFile writes p to path, whole or not at all. The error names the path.
func WriteFile(path string, p *Profile) error {
	if err := safefile.Write(path, func(w io.Writer) error { return Write(w, p) }); err != nil {
		return fmt.Errorf("write profile %s: %w", path, err)
	}
	return nil
}

// Write writes p as one file. Equal profiles give equal bytes. A profile that
// does not pass Check is not written.
func Write(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	header, err := packHeader(p)
	if err != nil {
		return err
	}
	columns, err := packColumns(p)
	if err != nil {
		return err
	}
	sum := sha256.New()
	prefix := []byte(magic)
	prefix = binary.LittleEndian.AppendUint32(prefix, Version)
	prefix = binary.LittleEndian.AppendUint64(prefix, uint64(len(header)))
	prefix = binary.LittleEndian.AppendUint64(prefix, uint64(len(columns)))
	for _, part := range [][]byte{prefix, header, columns} {
		sum.Write(part)
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

func packHeader(p *Profile) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	z, err := newPacker(nil)
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(text, nil), z.Close()
}

func packColumns(p *Profile) ([]byte, error) {
	var out bytes.Buffer
	z, err := newPacker(&out)
	if err != nil {
		return nil, err
	}
	c := &columnWriter{w: z}
	writeTable(c, p.Pages, pageColumns, nil)
	writeTable(c, p.Rows, rowColumns, rowCounts)
	writeTable(c, p.Latencies, latencyColumns, latencyCounts)
	writeTable(c, p.Lines, lineColumns, lineCounts)
	c.flush()
	if c.err != nil {
		return nil, c.err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func newPacker(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
}

// pageColumns and the others are the fields of a table in the order of the file, first
// those of small differences, then (…Counts) those that are written as they are; those
// of read.go are their mirror.
var pageColumns = []func(*Page) int64{
	func(p *Page) int64 { return int64(p.Object) },
	func(p *Page) int64 { return int64(p.Index) },
	func(p *Page) int64 { return int64(p.Home) },
	func(p *Page) int64 { return int64(p.Thread) },
	func(p *Page) int64 { return int64(p.Region) },
	func(p *Page) int64 { return int64(p.Place) },
	func(p *Page) int64 {
		if p.Serial {
			return 1
		}
		return 0
	},
}

var rowColumns = []func(*Row) int64{
	func(r *Row) int64 { return int64(r.Page) },
	func(r *Row) int64 { return int64(r.Thread) },
	func(r *Row) int64 { return int64(r.Region) },
	func(r *Row) int64 { return int64(r.Op) },
	func(r *Row) int64 { return int64(r.Level) },
	func(r *Row) int64 { return int64(r.First) },
	func(r *Row) int64 { return int64(r.Last) },
}

var rowCounts = []func(*Row) uint64{
	func(r *Row) uint64 { return r.Count },
	func(r *Row) uint64 { return r.Latency },
}

var latencyColumns = []func(*Latency) int64{
	func(l *Latency) int64 { return int64(l.Object) },
	func(l *Latency) int64 { return int64(l.Region) },
	func(l *Latency) int64 { return int64(l.Served) },
	func(l *Latency) int64 { return int64(l.From) },
	func(l *Latency) int64 { return int64(l.To) },
	func(l *Latency) int64 { return int64(l.Bucket) },
}

var latencyCounts = []func(*Latency) uint64{
	func(l *Latency) uint64 { return l.Samples },
	func(l *Latency) uint64 { return l.Accesses },
	func(l *Latency) uint64 { return l.Cycles },
}

var lineColumns = []func(*LineUse) int64{
	func(l *LineUse) int64 { return int64(l.Object) },
	func(l *LineUse) int64 { return l.Offset },
	func(l *LineUse) int64 { return int64(l.Node) },
	func(l *LineUse) int64 { return int64(l.Region) },
	func(l *LineUse) int64 { return int64(l.Place) },
}

var lineCounts = []func(*LineUse) uint64{
	func(l *LineUse) uint64 { return l.Written },
	func(l *LineUse) uint64 { return l.Read },
	func(l *LineUse) uint64 { return l.Loads },
	func(l *LineUse) uint64 { return l.Stores },
	func(l *LineUse) uint64 { return l.HITM },
}

// writeTable writes how many entries there are, and their columns.
func writeTable[T any](c *columnWriter, list []T, signed []func(*T) int64, counts []func(*T) uint64) {
	c.count(len(list))
	for _, get := range signed {
		c.signed(len(list), func(i int) int64 { return get(&list[i]) })
	}
	for _, get := range counts {
		c.unsigned(len(list), func(i int) uint64 { return get(&list[i]) })
	}
}

// columnWriter appends varints and remembers the first error.
type columnWriter struct {
	w   io.Writer
	buf []byte
	err error
}

func (c *columnWriter) count(n int) { c.buf = binary.AppendUvarint(c.buf, uint64(n)) }

func (c *columnWriter) unsigned(n int, at func(int) uint64) {
	for i := range n {
		c.buf = binary.AppendUvarint(c.buf, at(i))
		c.spill()
	}
}

func (c *columnWriter) signed(n int, at func(int) int64) {
	last := int64(0)
	for i := range n {
		v := at(i)
		c.buf = binary.AppendVarint(c.buf, v-last)
		last = v
		c.spill()
	}
}

func (c *columnWriter) spill() {
	if len(c.buf) >= 1<<16 {
		c.flush()
	}
}

func (c *columnWriter) flush() {
	if c.err == nil {
		_, c.err = c.w.Write(c.buf)
	}
	c.buf = c.buf[:0]
}
