package runfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/golden"
)

// machine is two nodes with two CPUs each, numbered 0 and 2 by the system.
func machine(r Run) Run {
	r.CPUs = []CPU{{0, 0}, {1, 0}, {2, 1}, {3, 1}}
	r.Nodes = []int{0, 2}
	return r
}

// runs are the files of testdata/run, which the tests of runtime-c read, too.
var runs = map[string]Run{
	"bind": machine(Run{Mode: Bind, System: Linux, Mark: true}),
	"pinned": machine(Run{Mode: Apply, System: Linux, PageRanges: 16382, PageSize: 2 << 20, Pinned: "OMP_PROC_BIND=close, OMP_PLACES=cores",
		Summary: "/tmp/a summary.json"}),
	"only": machine(Run{Mode: Bind, System: Linux, Mark: true, Only: []FuncOffset{{"/home/me/my app", 0x1250}, {"/home/me/lib.so", 0x8}}}),
	"track": machine(Run{Mode: Track, System: Emulated, Modules: []Module{{"", "/home/me/app"}},
		Objects: []Object{{ID: 0, Name: "u in bt.c", Kind: Global, Rank: -1, Count: 1, MinBytes: 800000, MaxBytes: 800000,
			Policy: PolicyXWise, Symbol: &Symbol{0, 0x4060, 800000}}}}),
	"log": machine(Run{Mode: Track, System: Linux, Pinned: "bind none", Log: "/tmp/a log"}),
	"apply": machine(Run{Mode: Apply, System: Linux, PageRanges: 16382,
		Modules: []Module{{"f62882d4138c6bc7888581b0020644e66ca71954", "/home/me/app"}, {"", "/usr/lib/libx.so.1"}},
		Objects: []Object{
			{ID: 0, Name: "grid.c:42 (init)", Kind: Heap, Rank: -1, Count: 1, MinBytes: 4096, MaxBytes: 1 << 30,
				Policy: PolicyXWise, Frames: [][]Span{{{0, 0x11ff, 0x1200}}, {{0, 0x1300, 0x1310}, {0, 0x1400, 0x1404}}},
				Touched: []Pages{{1, 3}, {-1, 2}}, Otherwise: []Pages{{1, 2}, {0, 3}}},
			{ID: 2, Name: "rows of a", Kind: Heap, Rank: 3, First: 16, Count: 512, MinBytes: 8192, MaxBytes: 1 << 20,
				Policy: PolicyPages, Frames: [][]Span{{{1, 0xff, 0x100}}}, Map: []Pages{{0, 12}, {1, 13}, {-1, 4}}},
			{ID: 3, Name: "mapped\nfile", Kind: Mapping, Rank: 0, First: 0, Count: 1, MinBytes: 4096, MaxBytes: 1 << 40,
				Policy: PolicyInterleave, Mask: 3, Frames: [][]Span{{{0, 0x2000, 0x2001}}}},
			{ID: 4, Name: "table in c.cpp", Kind: Global, Rank: -1, Count: 1, MinBytes: 40000, MaxBytes: 40000,
				Policy: PolicyBlockCyclic, Block: 8192, Symbol: &Symbol{0, 0x40a0, 40000}},
			{ID: 5, Name: "v in flow", Kind: Global, Rank: -1, Count: 1, MinBytes: 4096, MaxBytes: 4096,
				Policy: PolicyBind, Node: 1, Symbol: &Symbol{1, 0x9000, 4096}},
		}}),
	"affine": machine(Run{Mode: Track, System: Emulated, Affine: true, Modules: []Module{{"ab", "/home/me/app"}},
		Loops: []Loop{{ID: 0, Name: "tri.c:18 (sweep)", Runtime: GOMP, Module: 0, Offset: 0x1234, Schedule: Affine}}}),
	"loops": machine(Run{Mode: Apply, System: Linux, Modules: []Module{{"ab", "/home/me/app"}, {"", "/home/me/libl.so"}},
		Loops: []Loop{{ID: 0, Name: "lu.c:88 (blts)", Runtime: KMP, Module: 0, Offset: 0x1234, Schedule: Inverse},
			{ID: 3, Name: "ft.f90:7 (fft)", Runtime: GOMP, Module: 1, Offset: 0x88, Schedule: ByNodes, Nodes: []int{1, 0}},
			{ID: 4, Name: "bt.c:30 (x_solve)", Runtime: GOMP, Module: 0, Offset: 0x99, Schedule: BlockExclusive, Nodes: []int{1, 0}, Sweep: 62, Step: 1}},
		Read: []Module{{"ab", "/home/me/app"}, {"", "/home/me/libl.so"}}, Plain: []string{"libc", "libm"}}),
	"long-map": machine(Run{Mode: Apply, System: Linux, Modules: []Module{{"ab", "/home/me/app"}},
		Objects: []Object{{ID: 0, Name: "scattered", Kind: Heap, Rank: -1, Count: 1, MinBytes: 4096, MaxBytes: 1 << 30,
			Policy: PolicyPages, Frames: [][]Span{{{0, 0xff, 0x100}}}, Map: alternate(3000)}}}),
}

// alternate is a map of n runs of a page each.
func alternate(n int) []Pages {
	var out []Pages
	for i := range n {
		out = append(out, Pages{i % 2, 1})
	}
	return out
}

func TestWrite(t *testing.T) {
	for name, r := range runs {
		var got bytes.Buffer
		if err := Write(&got, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, l := range strings.Split(got.String(), "\n") {
			if len(l) >= 4000 {
				t.Errorf("%s: a line of %d bytes", name, len(l))
			}
		}
		golden.Compare(t, filepath.Join("..", "..", "testdata", "run", name+".run"), got.Bytes())
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		want   string
		breaks func(*Run)
	}{
		{"mode", func(r *Run) { r.Mode = "go" }},
		{"system", func(r *Run) { r.System = "" }},
		{"for track on linux", func(r *Run) { r.Log = "/tmp/log" }},
		{"on node 2 of 2", func(r *Run) { r.CPUs[0].Node = 2 }},
		{"more than 64", func(r *Run) { r.Nodes = make([]int, 65) }},
		{"kind", func(r *Run) { r.Objects[0].Kind = "stack" }},
		{"no frames", func(r *Run) { r.Objects[0].Frames = nil }},
		{"frame 0 has no addresses", func(r *Run) { r.Objects[0].Frames[0] = nil }},
		{"of module 7", func(r *Run) { r.Objects[0].Frames[0][0].Module = 7 }},
		{"count 0", func(r *Run) { r.Objects[0].Count = 0 }},
		{"sizes", func(r *Run) { r.Objects[0].MinBytes = 1 << 40 }},
		{"policy", func(r *Run) { r.Objects[0].Policy = "" }},
		{"bind to node 2", func(r *Run) { r.Objects[4].Node = 2 }},
		{"mask", func(r *Run) { r.Objects[2].Mask = 4 }},
		{"block", func(r *Run) { r.Objects[3].Block = 0 }},
		{"without a map", func(r *Run) { r.Objects[1].Map = nil }},
		{"run 0", func(r *Run) { r.Objects[1].Map[0].Node = 2 }},
		{"touched", func(r *Run) { r.Objects[0].Touched[0].Count = 0 }},
		{"symbol", func(r *Run) { r.Objects[3].Symbol.Bytes = 0 }},
		{"symbol", func(r *Run) { r.Objects[3].Symbol = nil }},
	} {
		r := clone(runs["apply"])
		c.breaks(&r)
		if err := Write(&bytes.Buffer{}, r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

func TestCheckLoop(t *testing.T) {
	for _, c := range []struct {
		want   string
		breaks func(*Loop)
	}{
		{"runtime", func(l *Loop) { l.Runtime = "libomp" }},
		{"module 2 of 2", func(l *Loop) { l.Module = 2 }},
		{"no call site", func(l *Loop) { l.Offset = 0 }},
		{"schedule", func(l *Loop) { l.Schedule = "reverse" }},
		{"sweep of 1 with step 1", func(l *Loop) { l.Schedule, l.Sweep, l.Step = BlockExclusive, 1, 1 }},
		{"sweep of 9 with step 2", func(l *Loop) { l.Schedule, l.Sweep, l.Step = BlockExclusive, 9, 2 }},
		{"0 nodes", func(l *Loop) { l.Nodes = nil }},
		{"2 nodes", func(l *Loop) { l.Schedule = Inverse }},
		{"each once", func(l *Loop) { l.Nodes = []int{1, 1} }},
		{"each once", func(l *Loop) { l.Nodes = []int{0} }},
		{"each once", func(l *Loop) { l.Nodes = []int{0, 2} }},
	} {
		r := runs["loops"]
		r.Loops = append([]Loop{}, r.Loops...)
		c.breaks(&r.Loops[1])
		if err := Write(&bytes.Buffer{}, r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

// clone copies what the cases of TestCheck break.
func clone(r Run) Run {
	r.CPUs = append([]CPU{}, r.CPUs...)
	r.Objects = append([]Object{}, r.Objects...)
	for i := range r.Objects {
		o := &r.Objects[i]
		o.Map, o.Touched = append([]Pages{}, o.Map...), append([]Pages{}, o.Touched...)
		frames := make([][]Span, len(o.Frames))
		for k := range frames {
			frames[k] = append([]Span{}, o.Frames[k]...)
		}
		o.Frames = frames
		if o.Symbol != nil {
			s := *o.Symbol
			o.Symbol = &s
		}
	}
	return r
}

func TestEnv(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"A=1", "A=1 LD_PRELOAD=/l.so NUMAOPT_RUN=/r"},
		{"LD_PRELOAD=/x.so A=1", "A=1 LD_PRELOAD=/l.so:/x.so NUMAOPT_RUN=/r"},
		{"LD_PRELOAD=/x.so:/l.so NUMAOPT_RUN=/old", "LD_PRELOAD=/l.so:/x.so NUMAOPT_RUN=/r"},
		{"LD_PRELOAD=", "LD_PRELOAD=/l.so NUMAOPT_RUN=/r"},
	} {
		got, err := Env(strings.Fields(c.in), "/l.so", "/r")
		if d := cmp.Diff(c.want, strings.Join(got, " ")); err != nil || d != "" {
			t.Errorf("Env(%s): %v\n%s", c.in, err, d)
		}
	}
}

func TestEnvSpaceInPath(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lib := filepath.Join(t.TempDir(), "a b.so")
	if err := os.WriteFile(lib, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	env, err := Env(nil, lib, "/r")
	if err != nil {
		t.Fatal(err)
	}
	link := strings.TrimPrefix(env[0], "LD_PRELOAD=")
	if real, err := filepath.EvalSymlinks(link); splits(link) || err != nil || real != lib {
		t.Errorf("%s leads to %s, %v", link, real, err)
	}
}

func TestLib(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "lib", "numaopt", Runtime)
	if _, err := lib(dir, Runtime); err == nil || !strings.Contains(err.Error(), "scripts/build") {
		t.Errorf("no library: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, exe := range []string{dir, filepath.Join(dir, "bin")} {
		if got, err := lib(exe, Runtime); err != nil || got != want {
			t.Errorf("lib(%s) = %s, %v", exe, got, err)
		}
	}
}

func TestStore(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	first, err := Store(runs["apply"])
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Store(runs["apply"]); err != nil || again != first {
		t.Errorf("the same run again: %s, %v; want %s", again, err, first)
	}
	old := time.Now().Add(-2 * keep)
	if err := os.Chtimes(first, old, old); err != nil {
		t.Fatal(err)
	}
	other, err := Store(runs["bind"])
	if err != nil || other == first {
		t.Errorf("another run: %s, %v", other, err)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("%s is still there after %v: %v", first, 2*keep, err)
	}
	if err := os.Chmod(filepath.Dir(other), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := storeIn(tmp, nil); err == nil || !strings.Contains(err.Error(), "you alone") {
		t.Errorf("a directory open to all: %v", err)
	}
	t.Setenv("TMPDIR", "/proc") // nothing can be made there
	if path, err := Store(runs["bind"]); err != nil || !strings.HasPrefix(path, "/dev/shm/") {
		t.Errorf("no place for temporary files: %s, %v", path, err)
	}
}

func TestQuiet(t *testing.T) {
	for _, c := range []struct{ environ, env, set string }{
		{"A=1", "A=1 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0", "OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0"},
		{"OMP_WAIT_POLICY=active A=1", "OMP_WAIT_POLICY=active A=1 GOMP_SPINCOUNT=0", "GOMP_SPINCOUNT=0"},
		{"GOMP_SPINCOUNT= OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT= OMP_WAIT_POLICY=passive", ""},
	} {
		env, set := Quiet(strings.Fields(c.environ))
		if strings.Join(env, " ") != c.env || strings.Join(set, " ") != c.set {
			t.Errorf("%s: %v, %v", c.environ, env, set)
		}
	}
}
