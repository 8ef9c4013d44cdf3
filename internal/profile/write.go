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
	c.count(len(p.Pages))
	for _, get := range pageColumns {
		c.signed(len(p.Pages), func(i int) int64 { return get(&p.Pages[i]) })
	}
	c.count(len(p.Rows))
	for _, get := range rowColumns {
		c.signed(len(p.Rows), func(i int) int64 { return get(&p.Rows[i]) })
	}
	c.unsigned(len(p.Rows), func(i int) uint64 { return p.Rows[i].Count })
	c.unsigned(len(p.Rows), func(i int) uint64 { return p.Rows[i].Latency })
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

// pageColumns and rowColumns read the signed columns in the order of the file;
// setPage and setRow in read.go are their mirror.
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
