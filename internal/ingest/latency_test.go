package ingest

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/profile"
)

// TestLatencies: latencies and lines of a recording are of the program's arrays, which
// are globals next to each other, of a mapping, and of code that has a name.
func TestLatencies(t *testing.T) {
	file, at := arrays(t)
	const heap = 0x7f0000000000
	all := uint64(pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.WeightStruct | pt.DataSrc)
	w := &pt.Writer{Events: []pt.Event{{Name: "cpu/mem-loads,ldlat=3/P", IDs: []uint64{1},
		Attr: perfdata.Attr{Type: 4, Config: 0x1cd, Period: 1000, SampleType: all, ReadFormat: 4, Flags: pt.SampleIDAll}}}}
	w.Mmap(100, 100, 1, at["main"]&^0xfff, 0x1000, at["main offset"]&^0xfff, file)
	w.Mmap(100, 100, 2, heap, 0x10000, 0, "//anon")
	add := func(cpu uint32, addr, source, latency uint64) {
		w.Add(pt.Variable{}, perfdata.Sample{Mode: 2, PID: 100, TID: 100 + cpu, CPU: cpu, Time: 10, Addr: addr, IP: at["main"],
			Period: 1000, Latency: latency, Source: perfdata.DataSrc(source)})
	}
	const (
		local  = perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelLocalRAM)<<5 | perfdata.NumRAM<<33
		remote = perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelRemRAM1)<<5 | perfdata.NumRAM<<33 | 1<<37
		store  = perfdata.OpStore | perfdata.LevelHit<<5
	)
	add(0, at["u"], local, 200)
	add(0, at["u"]+0x2000, local, 200)
	add(0, at["v"]+0x1000, local, 200)
	add(1, at["v"]+0x1000, remote, 300)
	for i := range uint32(3) { // a line's first store is not counted
		cpu := (i + 1) % 2
		add(cpu, heap+64+8*uint64(cpu), store, 0)
		add(cpu, at["u"]+0x1040, store, 0)
	}
	want := `main: 2 loads of u in arrays.c from local DRAM 0 to 0, 400000 cycles
main: 1 loads of v in arrays.c from local DRAM 0 to 0, 200000 cycles
main: 1 loads of v in arrays.c from remote DRAM 1 to 0, 300000 cycles
main: 1 stores of node 0 at 0x1040 of u in arrays.c, bytes 0x1, arrays.c:2
main: 1 stores of node 1 at 0x1040 of u in arrays.c, bytes 0x1, arrays.c:2
main: 1 stores of node 0 at 0x40 of anonymous mapping #0 (64 KiB), bytes 0x1, arrays.c:2
main: 1 stores of node 1 at 0x40 of anonymous mapping #0 (64 KiB), bytes 0x100, arrays.c:2
`
	if d := cmp.Diff(want, told(sampled(t, w, nil))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// told is the latencies and lines of a profile in words.
func told(p *profile.Profile) string {
	var b strings.Builder
	for _, l := range p.Latencies {
		fmt.Fprintf(&b, "%s: %d loads of %s from %v %d to %d, %d cycles\n", p.Regions[l.Region].Name, l.Samples, p.Objects[l.Object].Name, l.Served, l.From, l.To, l.Cycles)
	}
	for _, l := range p.Lines {
		at := p.Places[l.Place].Inlined[0]
		fmt.Fprintf(&b, "%s: %d stores of node %d at %#x of %s, bytes %#x, %s:%d\n", p.Regions[l.Region].Name, l.Stores, l.Node, l.Offset, p.Objects[l.Object].Name, l.Written, filepath.Base(at.File), at.Line)
	}
	return b.String()
}

// arrays builds a program with two arrays, and says where they and main are, and main
// in the file.
func arrays(t *testing.T) (file string, at map[string]uint64) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "arrays")
	const text = "__attribute__((aligned(4096))) double u[2048], v[2048];\nint main(void) { u[0] = v[0]; return 0; }\n"
	if err := os.WriteFile(file+".c", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("gcc", "-g", "-no-pie", "-o", file, file+".c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	e, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	symbols, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at = map[string]uint64{}
	for _, s := range symbols {
		at[s.Name] = s.Value
	}
	code := e.Section(".text")
	at["main offset"] = at["main"] - code.Addr + code.Offset
	return file, at
}
