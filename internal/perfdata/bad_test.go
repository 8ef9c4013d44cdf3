package perfdata_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
)

// TestCut cuts a file at every length near its beginning and at some others: what
// is left of it is read, and it says that it was cut.
func TestCut(t *testing.T) {
	w, want := writer(layouts[0].events, pt.Variable{}, 100)
	whole := w.File()
	for n := 0; n < len(whole); n += 1 + n/50 {
		f, err := perfdata.Parse("cut", whole[:n])
		if err != nil {
			continue
		}
		got := read(t, f, 1)
		if d := cmp.Diff(want[:len(got)], got, ignore, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%d of %d bytes: %s", n, len(whole), d)
		}
		if !f.Cut && len(got) < len(want) {
			t.Errorf("%d of %d bytes: %d samples of %d, and nothing said", n, len(whole), len(got), len(want))
		}
	}
}

// TestNotClosed reads what perf leaves when it is killed: the size of the data is
// not in the header yet, and no sections follow it.
func TestNotClosed(t *testing.T) {
	w, want := writer(layouts[0].events, pt.Variable{}, 100)
	b := w.File()
	binary.LittleEndian.PutUint64(b[48:], 0)
	f, err := perfdata.Parse("killed", b[:len(b)-len(b)/4])
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, f, 1)
	if !f.Cut || len(got) == 0 || cmp.Diff(want[:len(got)], got, ignore) != "" {
		t.Errorf("cut %v, %d samples of %d", f.Cut, len(got), len(want))
	}
}

// TestThreadsDirectory reads what perf record --threads leaves: a directory of a
// file with the header and files of records only.
func TestThreadsDirectory(t *testing.T) {
	w, want := writer(layouts[0].events, pt.Variable{}, 100)
	b := w.File()
	start, size := binary.LittleEndian.Uint64(b[40:]), binary.LittleEndian.Uint64(b[48:])
	records := b[start : start+size]
	half := bytes.Index(records, []byte{68, 0, 0, 0, 0, 0, 8, 0}) // FINISHED_ROUND
	first := bytes.Clone(b[:start])
	binary.LittleEndian.PutUint64(first[48:], uint64(half))
	first = append(first, records[:half]...)
	for i := range 4 { // no features
		binary.LittleEndian.PutUint64(first[72+8*i:], 0)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"data": first, "data.0": records[half:], "data.1": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	f, err := perfdata.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := cmp.Diff(want, read(t, f, 2), ignore); d != "" {
		t.Error(d)
	}
}

// TestSpool reads a stream, as from perf record -o - | numaopt import -.
func TestSpool(t *testing.T) {
	w, want := writer(layouts[0].events, pt.Variable{}, 100)
	f, err := perfdata.Spool("-", bytes.NewReader(w.Stream()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := cmp.Diff(want, read(t, f, 1), ignore); d != "" {
		t.Error(d)
	}
}

// TestRefused lists what cannot be read and what is said of it.
func TestRefused(t *testing.T) {
	good := func() []byte {
		w, _ := writer(layouts[0].events, pt.Variable{}, 10)
		return w.File()
	}
	at := func(offset int, v uint64) []byte {
		b := good()
		binary.LittleEndian.PutUint64(b[offset:], v)
		return b
	}
	unknownField := good()
	binary.LittleEndian.PutUint64(unknownField[binary.LittleEndian.Uint64(unknownField[24:])+24:], 1<<30|memory)
	newer, _ := writer(layouts[0].events, pt.Variable{}, 10)
	newer.Record(99, 0, make([]byte, 8), nil)
	short, _ := writer(layouts[0].events, pt.Variable{}, 10)
	b := short.File()
	binary.LittleEndian.PutUint16(b[binary.LittleEndian.Uint64(b[40:])+6:], 3)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "is empty"},
		{"short", []byte("PERFILE2"), "too short"},
		{"text", []byte("app 100/101 1.5: cpu/mem-loads/P: 7f00\n"), "is text"},
		{"another format", []byte("\x7fELF\x02\x01\x01 and so on and on"), "not a perf.data file"},
		{"first version", []byte("PERFFILE and so on and on"), "first version"},
		{"attrs beyond the end", at(32, 1<<40), "beyond the file's end"},
		{"attr size", at(16, 7), "no multiple"},
		{"data beyond the end", at(40, 1<<50), "beyond the file's end"},
		{"a field that is not known", unknownField, "newer kernel"},
		{"a record that is not known", newer.File(), "records of type 99"},
		{"a record shorter than its head", b, "damaged"},
	} {
		_, err := perfdata.Parse("bad", c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", c.name, err, c.want)
		}
	}
}

// TestSparse reads files that are large and hollow: a terabyte of which nothing but the
// header is there, and one whose header says that all of it is records.
func TestSparse(t *testing.T) {
	w, want := writer(layouts[0].events, pt.Variable{}, 10)
	head := w.File()
	head = head[:binary.LittleEndian.Uint64(head[40:])]
	hollow := func(name string, begin []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, begin, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<40); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all := bytes.Clone(head)
	binary.LittleEndian.PutUint64(all[48:], 1<<40-uint64(len(head)))
	for name, begin := range map[string][]byte{"zeros": nil, "header": head[:104], "records": all} {
		if f, err := perfdata.Open(hollow(name, begin)); err == nil {
			f.Close()
			t.Errorf("%s: was read", name)
		}
	}
	f, err := perfdata.Open(hollow("behind", w.File())) // what is behind a whole file is of no interest
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := cmp.Diff(want, read(t, f, 1), ignore); d != "" {
		t.Error(d)
	}
}

// TestForeignDamaged cuts and changes a file of the other byte order: an error, or no more samples
// than there were.
func TestForeignDamaged(t *testing.T) {
	w := &pt.Writer{Foreign: true, Events: layouts[0].events}
	want := samples(50, w.Events)
	w.Add(pt.Variable{}, want...)
	whole := w.File()
	if f, err := perfdata.Parse("foreign", whole); err != nil || len(read(t, f, 1)) != len(want) {
		t.Fatalf("as it was: %v", err)
	}
	for n := 0; n < len(whole); n += 1 + n/20 {
		b := bytes.Clone(whole)
		b[n] ^= 0xff
		for _, data := range [][]byte{b, whole[:n]} {
			f, err := perfdata.Parse("foreign", data)
			if err != nil {
				continue
			}
			if got := len(read(t, f, 1)); got > len(want) {
				t.Fatalf("byte %d: %d samples of %d", n, got, len(want))
			}
		}
	}
}

// TestDamagedSamples counts samples that are shorter than their fields.
func TestDamagedSamples(t *testing.T) {
	w, _ := writer(layouts[0].events, pt.Variable{}, 10)
	w.Record(9, 2, w.U64(nil, 1, 2, 3), nil)
	w.Record(9, 2, w.U64(nil, 12345), nil)
	f, err := perfdata.Parse("damaged", w.File())
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, f, 1); len(got) != 10 || f.Damaged != 2 {
		t.Errorf("%d samples, %d damaged; want 10 and 2", len(got), f.Damaged)
	}
}

// FuzzParse holds that no file, however damaged, makes the reader fail otherwise
// than by an error.
func FuzzParse(f *testing.F) {
	for _, l := range layouts {
		w, _ := writer(l.events, l.v, 6)
		f.Add(w.File())
		f.Add(w.Stream())
		if c, err := w.Compressed(81, 200); err == nil {
			f.Add(c.File())
		}
		w.Foreign = true
		f.Add(w.File())
	}
	f.Add(speFile().File())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := perfdata.Parse("fuzz", b)
		if err != nil {
			return
		}
		file.Side(func(perfdata.Side) error { return nil })                                                            //nolint:errcheck // any error will do
		file.Samples(1, func(int) func(*perfdata.Sample) error { return func(*perfdata.Sample) error { return nil } }) //nolint:errcheck // likewise
	})
}
