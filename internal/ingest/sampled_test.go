package ingest

import (
	"slices"
	"strings"
	"testing"

	"numaopt/internal/access"
	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/profile"
	"numaopt/internal/sample"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// faultsOf is a recording of page faults; flags are more of the event's.
func faultsOf(flags uint64) *pt.Writer {
	attr := perfdata.Attr{Type: 1, Config: 2, Period: 1, Flags: pt.SampleIDAll | flags,
		SampleType: pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU}
	w := &pt.Writer{Events: []pt.Event{{Name: "page-faults", Attr: attr, IDs: []uint64{1}}}}
	w.Comm(100, 100, 1, "app")
	w.Mmap(100, 100, 2, 0x7f0000000000, 1<<20, 0, "//anon")
	return w
}

// sampled is the profile of a recording on two nodes of one CPU; known is what its
// recorder knows of it, nil for a file.
func sampled(t *testing.T, w *pt.Writer, known *profile.Recording) *profile.Profile {
	t.Helper()
	f, err := perfdata.Parse("test", w.File())
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topo.Parse("2x1")
	if err != nil {
		t.Fatal(err)
	}
	symbols := new(symbol.Table)
	table, stats, err := sample.Read(f, sample.Options{Machine: machine, Symbols: symbols})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Sampled(f, table, stats, profile.Run{Topology: machine, Recording: known}, symbols)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLeftOut: the samples that are not used are told by reason, and add up; another
// process can be chosen of a file, not of a run that is over.
func TestLeftOut(t *testing.T) {
	w := faultsOf(0)
	for i := range uint64(10) {
		s := perfdata.Sample{Mode: 2, PID: 100, TID: 100, Time: 10 + i, Addr: 0x7f0000000000 + i<<12, IP: 0x401000, Period: 1}
		switch {
		case i < 3:
			s.PID, s.TID = 200, 200
		case i == 3:
			s.Addr = 0
		case i == 4:
			s.CPU = 9
		}
		w.Add(pt.Variable{}, s)
	}
	for _, known := range []*profile.Recording{nil, {}} {
		p := sampled(t, w, known)
		want := "samples left out: 3 of other processes, 1 without an address, 1 without a thread or CPU of the machine"
		if r := p.Run.Recording; r.Samples != 10 || r.Used != 5 || !slices.Contains(r.Notes, want) {
			t.Errorf("%+v, want %q", r, want)
		}
		if got := strings.Contains(strings.Join(p.Warnings, "\n"), "--pid"); got != (known == nil) {
			t.Errorf("recorded %v: warnings %q", known != nil, p.Warnings)
		}
	}
}

// TestKernelPlace: of a first touch that the kernel made it is said that it did, since
// which code of the program asked for it is not known.
func TestKernelPlace(t *testing.T) {
	w := faultsOf(0)
	for i, mode := range []uint16{1, 1, 2} {
		w.Add(pt.Variable{}, perfdata.Sample{Mode: mode, PID: 100, TID: 100, Time: 10, Addr: 0x7f0000000000 + uint64(i)<<12, IP: 0xffffffff81000000, Period: 1})
	}
	p := sampled(t, w, nil)
	var got []string
	for _, g := range p.Pages {
		name := "?"
		if g.Place >= 0 {
			name = access.CodeName(p, p.Places[g.Place])
		}
		got = append(got, name)
	}
	if want := []string{"kernel, for the program", "kernel, for the program", "?"}; !slices.Equal(got, want) {
		t.Errorf("first touched at %q, want %q", got, want)
	}
}

// TestCure: what a recording of page faults lacks, and what would help.
func TestCure(t *testing.T) {
	const user = 1<<5 | 1<<6 // exclude_kernel and exclude_hv
	for _, c := range []struct {
		flags  uint64
		known  *profile.Recording
		want   string
		kernel bool // its touches are missing
	}{
		{0, nil, "balancing moved; record with --phys-data", false},
		{user, nil, "balancing moved; record with --phys-data, as administrator, or with kernel.perf_event_paranoid=1", true},
		{user, &profile.Recording{}, "balancing moved; record as administrator, or with kernel.perf_event_paranoid=1", true},
	} {
		w := faultsOf(c.flags)
		w.Add(pt.Variable{}, perfdata.Sample{Mode: 2, PID: 100, TID: 100, Time: 10, Addr: 0x7f0000000000, IP: 0x401000, Period: 1})
		p := sampled(t, w, c.known)
		if !slices.ContainsFunc(p.Warnings, func(s string) bool { return strings.HasSuffix(s, c.want) }) {
			t.Errorf("%q, want one that ends with %q", p.Warnings, c.want)
		}
		if strings.Contains(strings.Join(p.Warnings, ""), "the kernel touched first") != c.kernel {
			t.Errorf("%q, the kernel's touches missing: %v", p.Warnings, c.kernel)
		}
	}
}
