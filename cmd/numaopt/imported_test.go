package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/report"
)

// TestImportedLatencies follows latencies from a recording on four nodes to the report,
// and to what the plan weighs nodes by. Each node has a page, which all nodes load
// from, 100 samples each, and nodes 0 and 1 write two words of one line.
func TestImportedLatencies(t *testing.T) {
	const nodes, samples, base = 4, 100, 0x7f0000000000
	kind := uint64(pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.WeightStruct | pt.DataSrc)
	w := &pt.Writer{Events: []pt.Event{{Name: "cpu/mem-loads,ldlat=3/P", IDs: []uint64{1},
		Attr: perfdata.Attr{Type: 4, Config: 0x1cd, Period: 1000, SampleType: kind, ReadFormat: 4, Flags: pt.SampleIDAll}}}}
	w.Mmap(100, 100, 1, base, 0x10000, 0, "//anon")
	add := func(node, addr, source, latency uint64) {
		w.Add(pt.Variable{}, perfdata.Sample{Mode: 2, PID: 100, TID: 100 + uint32(node), CPU: uint32(node), Time: 10, Addr: addr, IP: 0x401000,
			Period: 1000, Latency: latency, Source: perfdata.DataSrc(source)})
	}
	const (
		local  = perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelLocalRAM)<<5 | perfdata.NumRAM<<33
		remote = perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelRemRAM1)<<5 | perfdata.NumRAM<<33 | 1<<37
		hitm   = perfdata.OpLoad | perfdata.LevelHit<<5 | perfdata.SnoopHITM<<19 | perfdata.NumAnyCache<<33 | 1<<37
		store  = perfdata.OpStore | perfdata.LevelHit<<5
	)
	for i := range uint64(nodes) {
		for home := range uint64(nodes) {
			for k := range uint64(samples) {
				source := uint64(remote)
				if home == i {
					source = local
				}
				add(i, base+home*0x1000+k*8, source, []uint64{200, 320, 440, 320}[(home+nodes-i)%nodes])
			}
		}
	}
	for k := range uint64(24) { // ten of each node and more are enough to call it false
		add(k%2, base+0x800+8*(k%2), store, 0)
		add(k%2, base+0x800+8*(k%2), hitm, 600)
	}
	dir := t.TempDir()
	recording, prof := filepath.Join(dir, "perf.data"), filepath.Join(dir, "app.nprof")
	if err := os.WriteFile(recording, w.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	numaopt := func(args ...string) string {
		var out, said bytes.Buffer
		if code := run(context.Background(), &stdio{in: strings.NewReader(""), out: &out, err: &said}, args); code != 0 {
			t.Fatalf("%v: exit status %d\n%s", args, code, said.String())
		}
		return out.String() + said.String()
	}
	numaopt("import", recording, "--topology", "4x1", "-o", prof)
	text := numaopt("report", prof)
	for _, want := range []string{"Latency of loads in cycles, by where they were served", "remote HITM", "0  200  (100)  320  (100)  440  (100)  320  (100)", "Cache lines shared between nodes", "false"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
	var r report.Report
	file := filepath.Join(dir, "report.json")
	numaopt("report", prof, "--json", "-o", file)
	if doc, err := os.ReadFile(file); err != nil || json.Unmarshal(doc, &r) != nil || r.Latency == nil || r.Latency.Nodes[1][3].Mean != 440 || r.Lines.False != 1 {
		t.Errorf("%v; latency %+v, lines %+v", err, r.Latency, r.Lines)
	}
	if said := numaopt("plan", prof, "-o", filepath.Join(dir, "app.plan.yaml")); !strings.Contains(said, "loads from other nodes' memory take 1.6 to 2.2 times as long") {
		t.Errorf("the plan does not say by what nodes are weighed:\n%s", said)
	}
}
