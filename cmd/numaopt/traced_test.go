package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
	"numaopt/internal/ingest"
	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/programs"
	"numaopt/internal/runfile"
	"numaopt/internal/sample"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// TestSampledAsTraced samples programs under the runtime as a processor would, one
// access in 1000, and compares what becomes of that with a full trace: which share
// of the accesses is of which object, loop and thread.
func TestSampledAsTraced(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates programs")
	}
	sampler := buildSampler(t)
	for _, c := range []struct{ program, compiler string }{{"lu", "clang"}, {"lu", "gcc"}, {"pthreads", "gcc"}, {"bt-fortran", "gcc"}, {"cxx", "gcc"}} {
		t.Run(c.program+" "+c.compiler, func(t *testing.T) {
			program := []string{programs.Build(t, c.program, c.compiler)}
			t.Setenv("OMP_NUM_THREADS", "2")
			t.Setenv("OMP_WAIT_POLICY", "passive")
			traced := filepath.Join(t.TempDir(), "traced.nprof")
			if code, _, err := numaopt(append([]string{"profile", "-o", traced, "--topology", "2x1", "--"}, program...)...); code != 0 {
				t.Fatal(err)
			}
			want, err := profile.ReadFile(traced)
			if err != nil {
				t.Fatal(err)
			}
			got := sampledBy(t, sampler, program)
			fromSamples := filepath.Join(t.TempDir(), "sampled.nprof")
			if err := profile.WriteFile(fromSamples, got); err != nil {
				t.Fatal(err)
			}
			if a, b := schedules(t, traced), schedules(t, fromSamples); !slices.Equal(a, b) {
				t.Errorf("schedules of the plan from the trace: %v, from samples: %v", a, b)
			}
			compareShares(t, sharesOf(want), sharesOf(got))
			if d := cmp.Diff(loopsOf(want), loopsOf(got)); d != "" {
				t.Errorf("loops (-trace +samples):\n%s", d)
			}
		})
	}
}

func buildSampler(t *testing.T) string {
	t.Helper()
	if os.Getenv(runfile.LibDir) == "" {
		t.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	out := filepath.Join(t.TempDir(), "sampler.so")
	cmd := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-I", filepath.Join(programs.Root(), "runtime-c", "plugin"), "-o", out, "testdata/sampler/sampler.c", "-lpthread")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// sampledBy is the profile of a program run under the sampler and the runtime.
func sampledBy(t *testing.T, sampler string, program []string) *profile.Profile {
	t.Helper()
	dir := t.TempDir()
	machine, err := topo.Parse("2x1")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	opt := profileOptions{program: program, bind: string(topo.BindCompact)}
	environ, _, err := underRuntime(&stdio{in: os.Stdin, out: io.Discard, err: os.Stderr}, opt, machine, log)
	if err != nil {
		t.Fatal(err)
	}
	const period = 1000
	args := []string{"-plugin", fmt.Sprintf("%s,out=%s,period=%d", sampler, filepath.Join(dir, "raw"), period)}
	// What acts on the dynamic linker is not for the emulator itself.
	for _, kv := range environ {
		if strings.HasPrefix(kv, "LD_PRELOAD=") || strings.HasPrefix(kv, runfile.Variable+"=") {
			args = append(args, "-E", kv)
		}
	}
	if len(args) != 6 {
		t.Fatalf("%q: want the runtime loaded", args)
	}
	cmd := exec.Command("qemu-x86_64", append(args, program...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	f, err := perfdata.Open(perfDataOf(t, filepath.Join(dir, fmt.Sprintf("raw.%d", cmd.Process.Pid)), period))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols := new(symbol.Table)
	table, stats, err := sample.Read(f, sample.Options{Machine: machine, Symbols: symbols, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ingest.Sampled(f, table, stats, profile.Run{Command: program, Bind: opt.bind, Topology: machine}, symbols)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Warnings {
		t.Log(w)
	}
	return p
}

// perfDataOf writes what the sampler wrote as perf does, and returns the file's path.
func perfDataOf(t *testing.T, raw string, period uint64) string {
	t.Helper()
	var pid uint32
	fmt.Sscanf(filepath.Ext(raw), ".%d", &pid)
	w := &pt.Writer{Events: []pt.Event{{Name: "accesses", IDs: []uint64{1}, Attr: perfdata.Attr{Type: 4, Config: 1, Period: period, ReadFormat: 4, Flags: pt.SampleIDAll,
		SampleType: pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.PhysAddr}}}}
	// MEM_TOPOLOGY: version 1, blocks of 128 MiB, node 0 has block 0, node 1 block 1.
	w.Features = map[int][]byte{22: w.U64(nil, 1, 128<<20, 2, 0, 64, 64, 1, 1, 64, 64, 2)}
	home := map[uint64]uint64{} // of pages: where they are touched first, one node for each CPU
	maps, err := os.Open(raw + ".maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	for s := bufio.NewScanner(maps); s.Scan(); {
		var lo, hi, offset uint64
		var rights, device, inode, name string
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x %s %x %s %s %s", &lo, &hi, &rights, &offset, &device, &inode, &name); n == 7 && strings.HasPrefix(name, "/") {
			w.Mmap(pid, pid, 1, lo, hi-lo, offset, name)
		}
	}
	text, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		Time, Addr, IP            uint64
		TID, CPU, Store, Reserved uint32
	}
	for in := bytes.NewReader(text); in.Len() > 0; {
		var r record
		if err := binary.Read(in, binary.LittleEndian, &r); err != nil {
			t.Fatal(err)
		}
		node, touched := home[r.Addr>>12]
		if !touched {
			node = uint64(r.CPU)
			home[r.Addr>>12] = node
		}
		w.Add(pt.Variable{}, perfdata.Sample{Mode: 2, PID: pid, TID: r.TID, CPU: r.CPU, Time: r.Time, Addr: r.Addr, IP: r.IP, Period: period,
			Phys: 128<<20*node + 1<<20 + r.Addr&0xfff})
	}
	path := raw + ".data"
	if err := os.WriteFile(path, w.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// schedules is the loops of the plan that is made from a profile, and their schedules.
func schedules(t *testing.T, file string) []string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plan.yaml")
	if code, _, err := numaopt("plan", file, "-o", out); code != 0 {
		t.Fatal(err)
	}
	p, err := plan.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, l := range p.Loops {
		list = append(list, l.Name+": "+string(l.Schedule))
	}
	return list
}

// loopsOf is what is known of a profile's worksharing loops, by name.
func loopsOf(p *profile.Profile) map[string]profile.Region {
	out := map[string]profile.Region{}
	for _, r := range p.Regions {
		if r.Worksharing() {
			r.Code, r.Site, r.Group = ident.Code{}, ident.Code{}, min(r.Group, 1)
			out[r.Name] = r
		}
	}
	return out
}

// part is a part of a program's accesses.
type part struct {
	object, region string
	rank           int
}

// sharesOf is the parts of a profile's accesses, in per cent. Code of libraries that
// waits is not in them: how long that takes is chance.
func sharesOf(p *profile.Profile) map[part]float64 {
	out := map[part]float64{}
	sum := 0.0
	for i := range p.Rows {
		r := &p.Rows[i]
		region := &p.Regions[r.Region]
		key := part{p.Objects[p.Pages[r.Page].Object].Name, region.Name, p.Threads[r.Thread].Rank}
		if k := p.Objects[p.Pages[r.Page].Object].Kind; k == profile.Stack || k == profile.Image {
			key.object = string(k)
		}
		out[key] += float64(r.Count)
		sum += float64(r.Count)
	}
	for k := range out {
		out[k] *= 100 / sum
	}
	return out
}

func compareShares(t *testing.T, want, got map[part]float64) {
	t.Helper()
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, k := range slices.SortedFunc(maps.Keys(all), func(a, b part) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		if math.Abs(want[k]-got[k]) > 1 {
			t.Errorf("%v: %.1f %% of the accesses in the trace, %.1f %% of the samples", k, want[k], got[k])
		} else if want[k] > 1 {
			t.Logf("%v: %.1f %%, %.1f %%", k, want[k], got[k])
		}
	}
}
