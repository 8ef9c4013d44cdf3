// Package mitos reads the samples of Mitos (LLNL), as its mitosrun and mitosprocess
// write them for MemAxes: samples.csv.
//
// # Input
//
// Lines of comma-separated values. The first names the columns; which there are
// differs between versions of Mitos, and those that are not needed are not looked at.
// Needed are addr, cpu, tid and latency.
//
// # Output
//
// A recording (perfdata.File) of these samples, with a mapping for each variable: from
// its lowest to its highest address. And notes: what was left out, and why.
//
// # Limits
//
// The period is not in the file: each sample counts once. Code is not known, since
// nothing says where the program was loaded.
package mitos

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"numaopt/internal/perfdata"
)

// Is reports whether a file that begins so is one of Mitos's: its first line has
// columns of these names.
func Is(begin []byte) bool {
	line, _, _ := strings.Cut(string(begin), "\n")
	names := strings.Split(strings.TrimSpace(line), ",")
	return slices.Contains(names, "latency") && slices.Contains(names, "variable")
}

// Open reads the file at path.
func Open(path string) (*perfdata.File, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	r, notes, err := Read(path, f)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return r, notes, err
}

// Read reads samples; path is for messages.
func Read(path string, from io.Reader) (*perfdata.File, []string, error) {
	in := bufio.NewScanner(from)
	in.Buffer(make([]byte, 1<<16), longestLine)
	if !in.Scan() {
		return nil, nil, fmt.Errorf("its first line: %w", cmp.Or(in.Err(), io.EOF))
	}
	t, err := newTable(fields(in.Text()))
	if err != nil {
		return nil, nil, err
	}
	line := 2
	for ; in.Scan(); line++ {
		if in.Text() == "" {
			continue
		}
		if err := t.add(fields(in.Text())); err != nil {
			t.leaveOut(line, err)
		}
	}
	if in.Err() != nil {
		return nil, nil, fmt.Errorf("line %d: %w", line, in.Err())
	}
	if len(t.samples) == 0 {
		return nil, nil, fmt.Errorf("no sample can be used%s", t.why(": "))
	}
	attr := perfdata.Attr{Period: 1, SampleType: perfdata.ListedFields}
	return perfdata.Listed(path, attr, append(t.names(path), t.mappings()...), t.samples), t.notes(), nil
}

// longestLine is in bytes.
const longestLine = 1 << 24

// fields splits a line. A quote that no other ends reaches to the end of its line, not
// into those that follow: Mitos writes each sample on one.
func fields(line string) []string {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, ",")
	}
	in := csv.NewReader(strings.NewReader(line))
	in.LazyQuotes = true
	list, _ := in.Read() // of what is left of a bad one something is missing
	return list
}

// table gathers the lines.
type table struct {
	column    map[string]int
	samples   []perfdata.Sample
	variables map[string]*extent
	bad       int
	reasons   []string // of the first bad lines
}

// extent is the lowest and the highest address of a variable.
type extent struct {
	name    string
	pid     uint32
	lo, hi  uint64
	samples int
}

func newTable(head []string) (*table, error) {
	t := &table{column: map[string]int{}, variables: map[string]*extent{}}
	for i, name := range head {
		t.column[strings.TrimSpace(name)] = i
	}
	var missing []string
	for _, name := range []string{"addr", "cpu", "tid", "latency"} {
		if _, ok := t.column[name]; !ok {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("has no column %s: a file of Mitos has one for each of addr, cpu, tid and latency (files made for MemAxes by other tools do not say which page and thread)", strings.Join(missing, ", "))
	}
	return t, nil
}

// latencyBits is of the longest latency in cycles, seconds: sums of what is longer, as
// only damage is, would be of nothing.
const latencyBits = 32

// add takes the sample of one line.
func (t *table) add(record []string) error {
	s := perfdata.Sample{Mode: 2, Period: 1}
	var err error
	number := func(name string, bits int) uint64 {
		text, ok := t.field(record, name)
		if !ok {
			if _, there := t.column[name]; there && err == nil {
				err = fmt.Errorf("it has no %s", name)
			}
			return 0
		}
		n, e := strconv.ParseUint(text, 0, bits)
		if e != nil && err == nil {
			err = fmt.Errorf("%s is %q", name, text)
		}
		return n
	}
	s.Addr, s.CPU, s.TID, s.Latency = number("addr", 64), uint32(number("cpu", 32)), uint32(number("tid", 32)), number("latency", latencyBits)
	s.IP, s.Time, s.PID = number("ip", 64), number("time", 64), uint32(number("pid", 32))
	if _, there := t.column["pid"]; !there {
		s.PID = 1
	}
	if err != nil {
		return err
	}
	s.Source = t.source(record)
	t.samples = append(t.samples, s)
	t.extend(record, &s)
	return nil
}

// field is a column of a line; false where the file has none such, or the line.
func (t *table) field(record []string, name string) (string, bool) {
	i, ok := t.column[name]
	if !ok || i >= len(record) {
		return "", false
	}
	return strings.TrimSpace(record[i]), true
}

// source is where the access was served: data_src as the kernel's word or as text, or
// in newer files level, hit_type, op_type and snoop_mode as texts.
func (t *table) source(record []string) perfdata.DataSrc {
	if text, ok := t.field(record, "data_src"); ok {
		if word, err := strconv.ParseUint(text, 0, 64); err == nil {
			return perfdata.DataSrc(word)
		}
		return Source(text)
	}
	var words []string
	for _, name := range []string{"level", "hit_type", "op_type", "snoop_mode"} {
		text, _ := t.field(record, name)
		words = append(words, text)
	}
	return Source(strings.Join(words, "|"))
}

// extend makes its variable reach to the address of a sample.
func (t *table) extend(record []string, s *perfdata.Sample) {
	name, ok := t.field(record, "variable")
	if !ok || name == "" || name == "??" || s.Addr == 0 {
		return
	}
	key := fmt.Sprint(s.PID, " ", name)
	v := t.variables[key]
	if v == nil {
		v = &extent{name: name, pid: s.PID, lo: s.Addr, hi: s.Addr + 1}
		t.variables[key] = v
	}
	v.lo, v.hi = min(v.lo, s.Addr), max(v.hi, s.Addr+1)
	v.samples++
}

// names names the processes after the file: their own names are not in it.
func (t *table) names(path string) []perfdata.Side {
	var out []perfdata.Side
	seen := map[uint32]bool{}
	for i := range t.samples {
		if pid := t.samples[i].PID; !seen[pid] {
			seen[pid] = true
			out = append(out, &perfdata.Comm{PID: pid, TID: pid, Name: filepath.Base(path)})
		}
	}
	return out
}

// mappings is a mapping for each variable. Where two share addresses the one with more
// samples has them: it comes later.
func (t *table) mappings() []perfdata.Side {
	var all []*extent
	for _, v := range t.variables {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *extent) int {
		return cmp.Or(cmp.Compare(a.samples, b.samples), cmp.Compare(a.lo, b.lo), cmp.Compare(a.name, b.name))
	})
	var out []perfdata.Side
	for _, v := range all {
		out = append(out, &perfdata.Mmap{PID: v.pid, TID: v.pid, Addr: v.lo, Len: v.hi - v.lo, Name: "variable " + v.name})
	}
	return out
}

// namedLines is how many bad lines are named.
const namedLines = 5

func (t *table) leaveOut(line int, err error) {
	if t.bad++; len(t.reasons) < namedLines {
		t.reasons = append(t.reasons, fmt.Sprintf("line %d: %v", line, err))
	}
}

func (t *table) why(before string) string {
	if t.bad == 0 {
		return ""
	}
	text := before + strings.Join(t.reasons, "; ")
	if more := t.bad - len(t.reasons); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func (t *table) notes() []string {
	notes := []string{"samples of Mitos: their period is not in the file, and each counts once; functions and loops are not known"}
	if t.bad > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d lines are left out: %s", t.bad, t.bad+len(t.samples), t.why("")))
	}
	return notes
}
