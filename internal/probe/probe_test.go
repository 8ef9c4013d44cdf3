package probe

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/golden"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// TestChain: one cycle through all links, of which none is passed twice.
func TestChain(t *testing.T) {
	c := newChain(units.MiB)
	b := placed(t, c, units.MiB)
	seen, at := map[uint64]bool{}, uint64(0)
	for range c {
		if seen[at] || at%stride != 0 {
			t.Fatalf("link %d after %d links", at, len(seen))
		}
		seen[at] = true
		at = b.words[at]
	}
	if at != 0 || len(seen) != int(units.MiB)/128 {
		t.Errorf("at %d after %d links", at, len(seen))
	}
}

// placed is a buffer on the first node of this machine.
func placed(t *testing.T, c chain, size units.Bytes) *buffer {
	t.Helper()
	b, err := c.place(size, here(t).Nodes[0].OS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.free)
	return b
}

func here(t *testing.T) topo.Topology {
	t.Helper()
	m, err := topo.Read(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLatency: loads that wait for each other take long from memory, and hardly any
// time from a cache; would they not wait, some ten of them would be under way at once.
func TestLatency(t *testing.T) {
	near := placed(t, newChain(16*units.KiB), 16*units.KiB).passage()
	far := placed(t, newChain(256*units.MiB), 256*units.MiB).passage()
	if far < 20 || far < 3*near {
		t.Errorf("%.1f ns from the cache, %.1f ns from memory", near, far)
	}
}

// passage is the least time of a load in some passes: a busy machine makes others
// longer.
func (b *buffer) passage() float64 {
	least := time.Hour
	at, steps := uint64(0), 1<<17
	for range 10 {
		var took time.Duration
		if at, took = follow(b.words, at, steps); took < least {
			least = took
		}
	}
	return float64(least.Nanoseconds()) / float64(steps)
}

// TestNowhere: memory that is not on its node is no measurement.
func TestNowhere(t *testing.T) {
	c := newChain(units.MiB)
	if _, err := c.place(units.MiB, 500); err == nil || !strings.Contains(err.Error(), "mbind: EINVAL (22)") {
		t.Errorf("a node that is not there: %v", err)
	}
	b := placed(t, c, units.MiB)
	if err := b.isOn(500); err == nil || !strings.Contains(err.Error(), "256 of 256 pages are not on node 500") {
		t.Error(err)
	}
}

// TestNew measures this machine, beside a node that it does not have, of which the
// firmware's table tells.
func TestNew(t *testing.T) {
	m := here(t)
	m.Nodes = append(m.Nodes[:1:1], topo.Node{OS: 500})
	cpus := m.Nodes[0].OS
	dir := "sys/devices/system/node/node500/access0/initiators/"
	root := fstest.MapFS{
		dir + "read_latency": file("390"), dir + "read_bandwidth": file("30000"), dir + "node" + string(rune('0'+cpus)) + "/x": file(""),
	}
	var told [][2]int
	table, err := New(Options{Machine: m, Root: root, Progress: func(_, _, done, all int) { told = append(told, [2]int{done, all}) }})
	if err != nil {
		t.Fatal(err)
	}
	a, b := table.Pairs[0], table.Pairs[1]
	if a.Source != "measured" || a.NS < 5 || a.NS > 5000 || a.GBs < 0.1 || a.GBs > 5000 || a.HMAT != nil {
		t.Errorf("%+v", a)
	}
	if b.Source != "HMAT" || b.NS != 390 || b.GBs < 31.4 || b.GBs > 31.5 || !strings.Contains(table.Warnings[0], "memory of node 500: mbind: EINVAL") {
		t.Errorf("%+v, %q", b, table.Warnings)
	}
	if d := cmp.Diff([][2]int{{0, 2}, {1, 2}}, told); d != "" {
		t.Error(d)
	}
}

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }

// TestBuffer: four times the caches of a node, where it has the room.
func TestBuffer(t *testing.T) {
	root := fstest.MapFS{"sys/devices/system/node/node0/meminfo": file("Node 0 MemTotal: 1 kB\nNode 0 MemFree:  8388608 kB")}
	for cpu, shared := range map[string]string{"0": "0-1", "1": "0-1", "2": "2-3", "3": "2-3"} {
		dir := "sys/devices/system/cpu/cpu" + cpu + "/cache/"
		root[dir+"index0/size"], root[dir+"index0/shared_cpu_list"] = file("32K"), file(cpu)
		root[dir+"index3/size"], root[dir+"index3/shared_cpu_list"] = file("32768K"), file(shared)
	}
	opt := Options{Machine: topo.Topology{Nodes: []topo.Node{{CPUs: []int{0, 1, 2, 3}}}}, Root: root}
	if got, short := opt.buffer(); got != 256*units.MiB || short != nil {
		t.Errorf("%v, want 4 x 2 x 32 MiB; %v", got, short)
	}
	root["sys/devices/system/node/node0/meminfo"] = file("Node 0 MemFree: 409600 kB\nNode 0 Active(file): 204800 kB\nNode 0 Inactive(file): 204800 kB")
	if got, short := opt.buffer(); got != 200*units.MiB || short != nil {
		t.Errorf("%v, want a quarter of what is free and of files; %v", got, short)
	}
	root["sys/devices/system/node/node0/meminfo"] = file("Node 0 MemFree: 409600 kB")
	if got, short := opt.buffer(); got != 100*units.MiB || short == nil || !strings.Contains(short.Error(), "less than twice the last caches (64 MiB)") {
		t.Errorf("%v, want a quarter of what is free, which is too little; %v", got, short)
	}
	opt.Root = fstest.MapFS{}
	if got, short := opt.buffer(); got != 64*units.MiB || short != nil {
		t.Errorf("%v where nothing is known; %v", got, short)
	}
}

// TestShort: what a short buffer measures is not told for memory where the firmware
// knows better.
func TestShort(t *testing.T) {
	m := here(t)
	m.Nodes = m.Nodes[:1]
	node, dir := "node"+strconv.Itoa(m.Nodes[0].OS), "sys/devices/system/node/"
	root := fstest.MapFS{dir + node + "/meminfo": file("Node 0 MemFree: 16384 kB")}
	for _, cpu := range m.Nodes[0].CPUs {
		cache := "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/cache/index3/"
		root[cache+"size"], root[cache+"shared_cpu_list"] = file("32768K"), file("0-99")
	}
	for _, want := range []string{"measured", "HMAT"} {
		table, err := New(Options{Machine: m, Root: root})
		if err != nil {
			t.Fatal(err)
		}
		if p := table.Pairs[0]; p.Source != want || want == "HMAT" && p.NS != 90 || !strings.Contains(table.Warnings[0], "the buffer of 4 MiB") {
			t.Errorf("%+v, %q; want %s", p, table.Warnings, want)
		}
		initiators := dir + node + "/access0/initiators/"
		root[initiators+"read_latency"], root[initiators+"read_bandwidth"], root[initiators+node+"/x"] = file("90"), file("30000"), file("")
	}
}

func TestText(t *testing.T) {
	table := &Table{Buffer: 64 * units.MiB, Huge: true, Pairs: []Pair{
		{From: 0, To: 0, NS: 80, GBs: 120, Source: "measured", HMAT: &HMAT{NS: 77, GBs: 131}},
		{From: 0, To: 1, NS: 140, GBs: 60, Source: "measured"},
		{From: 0, To: 4, Source: ""},
		{From: 1, To: 0, NS: 141, GBs: 61, Source: "measured"},
		{From: 1, To: 1, NS: 81, GBs: 121, Source: "measured"},
		{From: 1, To: 4, NS: 300, GBs: 20, Source: "measured"},
	}}
	var out bytes.Buffer
	if err := table.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/table.txt", out.Bytes())
}

// TestRatios: by the machine's own numbers, from a file.
func TestRatios(t *testing.T) {
	m := topo.Topology{Nodes: []topo.Node{{OS: 0, CPUs: []int{0}}, {OS: 4, CPUs: []int{1}}, {OS: 7}}}
	table := &Table{Pairs: []Pair{{From: 0, To: 0, NS: 100}, {From: 0, To: 4, NS: 150}, {From: 0, To: 7, NS: 300}, {From: 4, To: 0, NS: 160}, {From: 4, To: 4, NS: 80}, {From: 4, To: 7, NS: 240}, {From: 9, To: 9, NS: 1}}}
	name := filepath.Join(t.TempDir(), "latency.json")
	var text bytes.Buffer
	if err := table.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	read, err := ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read.Ratios(m)
	if d := cmp.Diff([]float64{1, 1.5, 3, 2, 1, 3, 0, 0, 0}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	read.Pairs[3].NS = 0
	if _, err := read.Ratios(m); err == nil || err.Error() != "no latency of node 4 to memory of node 0" {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(name); err == nil || !strings.Contains(err.Error(), "not what numaopt doctor --latency --json prints") {
		t.Error(err)
	}
}
