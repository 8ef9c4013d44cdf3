package profile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

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
	z, err := newPacker(1)
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(text, nil), z.Close()
}

// packColumns packs each column by itself, several at a time: zstd reads one packed
// piece after the other as one.
func packColumns(p *Profile) ([]byte, error) {
	columns := slices.Concat(
		columnsOf(p.Pages, pageColumns, nil),
		columnsOf(p.Rows, rowColumns, rowCounts),
		columnsOf(p.Latencies, latencyColumns, latencyCounts),
		columnsOf(p.Lines, lineColumns, lineCounts),
		columnsOf(p.CodeUses, codeColumns, codeCounts),
		columnsOf(p.Intervals, intervalColumns, intervalCounts))
	workers := runtime.GOMAXPROCS(0)
	z, err := newPacker(workers)
	if err != nil {
		return nil, err
	}
	packed := make([][]byte, len(columns))
	var wait sync.WaitGroup
	room := make(chan struct{}, workers)
	for i, bytes := range columns {
		room <- struct{}{}
		wait.Go(func() {
			packed[i] = z.EncodeAll(bytes(), nil)
			<-room
		})
	}
	wait.Wait()
	return slices.Concat(packed...), z.Close()
}

// newPacker packs as many pieces at a time as workers.
func newPacker(workers int) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(workers), zstd.WithEncoderLevel(zstd.SpeedFastest))
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

var codeColumns = []func(*CodeUse) int64{
	func(u *CodeUse) int64 { return int64(u.Code) },
	func(u *CodeUse) int64 { return int64(u.Object) },
	func(u *CodeUse) int64 { return int64(u.Region) },
	func(u *CodeUse) int64 { return int64(u.Op) },
}

var codeCounts = []func(*CodeUse) uint64{
	func(u *CodeUse) uint64 { return u.Local },
	func(u *CodeUse) uint64 { return u.Remote },
	func(u *CodeUse) uint64 { return u.Unknown },
	func(u *CodeUse) uint64 { return u.Latency },
	func(u *CodeUse) uint64 { return u.Loads },
}

var intervalColumns = []func(*Interval) int64{
	func(v *Interval) int64 { return int64(v.Thread) },
	func(v *Interval) int64 { return int64(v.At) },
	func(v *Interval) int64 { return int64(v.Region) },
	func(v *Interval) int64 { return int64(v.Home) },
}

var intervalCounts = []func(*Interval) uint64{
	func(v *Interval) uint64 { return v.Count },
	func(v *Interval) uint64 { return v.Work },
}

// columnsOf is how many entries there are, and their columns, each made when it is
// called.
func columnsOf[T any](list []T, signed []func(*T) int64, counts []func(*T) uint64) []func() []byte {
	out := []func() []byte{func() []byte { return binary.AppendUvarint(nil, uint64(len(list))) }}
	for _, get := range signed {
		out = append(out, func() []byte {
			buf, last := make([]byte, 0, 2*len(list)), int64(0)
			for i := range list {
				v := get(&list[i])
				buf = binary.AppendVarint(buf, v-last)
				last = v
			}
			return buf
		})
	}
	for _, get := range counts {
		out = append(out, func() []byte {
			buf := make([]byte, 0, 2*len(list))
			for i := range list {
				buf = binary.AppendUvarint(buf, get(&list[i]))
			}
			return buf
		})
	}
	return out
}
