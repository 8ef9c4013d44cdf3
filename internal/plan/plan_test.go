package plan

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// whole is a plan that uses every field.
func whole() *Plan {
	app := Module{Name: "app", BuildID: "0123abcd"}
	return &Plan{
		Version: Version,
		From: From{Command: []string{"./app", "-n", "100", "a: b", "*x", ""}, Topology: "4x2", Nodes: 4,
			Only: []string{"solve", "grid.c:42"}, Profile: "f00d", Again: []string{"beef", "cafe"}},
		Predict: Predict{RemoteBefore: 74.91, RemoteAfter: 1.5, PagesOnly: 24.25, Source: new(float64)},
		Threads: Threads{Bind: "compact"},
		Objects: []Entry{{
			Name: "grid.c:42 (init_grid)", Kind: "heap", Bytes: 64 << 20,
			Why: "Serial initialisation: thread 0 first touched all of it in init_grid (grid.c:44), threads of four nodes use it afterwards.",
			Stack: []Frame{
				{Module: app, Offset: 0x11f3, Function: "init_grid", File: "grid.c", Line: 42, FunctionLine: 38},
				{Module: app, Offset: 0x10aa, Function: "std::vector<int, a: b>::vector", File: "grid #1.c", Line: 9,
					InlinedAt: []Place{{Function: "Grid::Grid", File: "grid #1.c", Line: 30, FunctionLine: 28}}},
				{Module: Module{Name: "libc.so.6"}, Offset: 0x2724a},
			},
			Instance: &Instance{Rank: 0, First: 0, Count: 1},
			Place:    Distribution{Policy: XWise},
			Touched:  Runs{{1, 16000}, {-1, 385}},
			Predict:  Predict{RemoteBefore: 75},
		}, {
			Name: "rows.c:7 (main)", Kind: "heap", Bytes: 5000,
			Stack:    []Frame{{Module: app, Offset: 0x2000}},
			Instance: &Instance{Rank: 1, First: 2, Count: 100},
			Place:    Distribution{Policy: BlockCyclic, Block: 8192},
		}, {
			Name: "rows.c:7 (main) #0", Kind: "heap", Bytes: 5000,
			Stack:    []Frame{{Module: app, Offset: 0x2000}},
			Instance: &Instance{Rank: 1, First: 0, Count: 2},
			Place:    Distribution{Policy: Bind, Node: 3},
		}, {
			Name: "mapping at io.c:3", Kind: "mapping", Bytes: 1 << 20,
			Stack: []Frame{{Module: Module{Name: "libio.so", BuildID: "content:00ff"}, Offset: 0x3000}},
			Place: Distribution{Policy: Interleave, Nodes: []int{1, 3}},
		}, {
			Name: "u in bt.c", Kind: "global", Bytes: 4 * 4096 * 40, Symbol: "u", Module: app, File: "bt.c",
			Place: Distribution{Policy: Pages, Map: MakeRuns(pattern(160))},
		}},
		Loops: []Loop{{
			Name: "lu.c:88 (blts)", Module: app, Offset: 0x1400, Runtime: "libomp", Schedule: StaticInverse, Group: 1,
			Why:      "30.0 % of the DRAM accesses. It walks u in bt.c against the order of lu.c:60 (buts).",
			Function: "blts", File: "lu.c", Line: 88, FunctionLine: 80, Predict: Predict{RemoteBefore: 80, RemoteAfter: 2},
		}, {
			Name: "lu.c:95 (blts)", Module: app, Offset: 0x1500, Runtime: "libomp", Schedule: StaticInverse, Group: 1,
		}, {
			Name: "fft.c:9 (cffts1)", Module: app, Offset: 0x1600, Runtime: "libgomp", Schedule: ByNodes, Nodes: []int{1, 2, 3, 0},
		}, {
			Name: "bt.c:30 (x_solve)", Module: app, Offset: 0x1700, Runtime: "libgomp", Schedule: BlockExclusive, Nodes: []int{0, 3, 2, 1}, Sweep: 62, Step: 1,
		}},
		Notes: []string{"placement can't help: v in bt.c", "# not a comment", "a: b\nsecond line"},
	}
}

// pattern is a map with many runs, some of pages left alone.
func pattern(pages int) []int {
	m := make([]int, pages)
	for i := range m {
		m[i] = (i*i/7)%5 - 1
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	want := whole()
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := WriteFile(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		text, _ := os.ReadFile(path)
		t.Fatalf("%v\n%s", err, text)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Entry{}, "Why"), cmpopts.IgnoreFields(Loop{}, "Why")); d != "" {
		t.Errorf("read differs from written (-want +got):\n%s", d)
	}
}

// TestGolden shows the file as people see it, and that the same plan gives the
// same bytes on any machine. UPDATE=1 writes it.
func TestGolden(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, whole()); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/whole.plan.yaml"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReadErrors(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, whole()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	edit := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("the plan has no %q", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "not a numaopt plan"},
		{"foreign", "foo: bar\n", "line 1: not a numaopt plan"},
		{"binary", "\x7fELF\x00\x01", "not a numaopt plan"},
		{"newer", edit("numaopt-plan: 1", "numaopt-plan: 2\nweather: fine"), "unknown plan version 2: this numaopt reads up to 1; update numaopt"},
		{"no version", edit("numaopt-plan: 1", "numaopt-plan: x"), "not a numaopt plan"},
		{"cut at a line", text[:strings.Index(text, "objects:")], "the file ends early"},
		{"cut in a line", text[:len(text)/2], "the file ends early"},
		{"cut at the end", strings.TrimSuffix(text, "...\n"), "the file ends early"},
		{"unknown field", edit("  policy: x-wise", "  policy: x-wise\n    colour: red"), `unknown field "colour"`},
		{"unknown policy", edit("policy: x-wise", "policy: y-wise"), `policy "y-wise" is not one of`},
		{"number for text", edit("nodes: 4", "nodes: four"), "line 10: "},
		{"bad node", edit("node: 3", "node: 4"), "object 3 (rows.c:7 (main) #0): place: node 4 is not one of the plan's 4 nodes"},
		{"bad run", edit("1*16000", "1*-3"), "number of pages is not from 1"},
		{"huge run", edit("1*16000", "1*99999999999999999999"), "number of pages is not from 1"},
		{"bad touched", edit("1*16000", "2*16000"), "touched: runs are"},
		{"bad block", edit("block: 8KiB", "block: 5000"), "not a multiple of the page"},
		{"same twice", edit("first: 2", "first: 1"), "an entry above it (rows.c:7 (main)) places the same memory"},
		{"other policy's field", edit("policy: x-wise", "policy: x-wise\n    node: 1"), `policy "x-wise" has no node`},
		{"duplicate key", edit("threads:", "threads:\n  bind: none\nthreads:"), "line 21: "},
		{"tab", edit("threads:", "\tthreads:"), "line "},
		{"unknown schedule", edit("schedule: static-inverse", "schedule: backwards"), `loop 1 (lu.c:88 (blts)): schedule "backwards" is not static-inverse, nodes, block-exclusive or affine`},
		{"no call site", edit("offset: 0x1500", "offset: 0"), "loop 2 (lu.c:95 (blts)): no offset"},
		{"no module", edit("name: fft.c:9 (cffts1)\n  module: {name: app, build-id: 0123abcd}", "name: fft.c:9 (cffts1)"), `loop 3 (fft.c:9 (cffts1)): module name "" is not`},
		{"a sweep without phases", edit("sweep: 62", "sweep: 3"), "a sweep of 3 instances is shorter than its 4 phases"},
		{"a step that meets two nodes", edit("step: 1", "step: 2"), "step 2 is not from 1 to 3, or has a factor in common with the 4 nodes"},
		{"no step", edit("step: 1", "step: 0"), "step 0 is not from 1 to 3"},
		{"a sweep of another schedule", edit("schedule: block-exclusive", "schedule: nodes"), "schedule \"nodes\" has no sweep"},
		{"short permutation", edit("[1, 2, 3, 0]", "[1, 2, 3]"), "nodes: [1 2 3] has 3 of the plan's 4 nodes"},
		{"a node twice", edit("[1, 2, 3, 0]", "[1, 2, 3, 3]"), "nodes: [1 2 3 3] has node 3 twice"},
		{"no such node", edit("[1, 2, 3, 0]", "[1, 2, 3, 4]"), "nodes: node 4 is not one of the plan's 4 nodes"},
		{"nodes for inverse", edit("schedule: static-inverse", "schedule: static-inverse\n  nodes: [0, 1, 2, 3]"), `"static-inverse" has no nodes`},
		{"nodes for affine", edit("schedule: static-inverse", "schedule: affine\n  nodes: [0, 1, 2, 3]"), `"affine" has no nodes`},
		{"one call site twice", edit("offset: 0x1500", "offset: 0x1400"), "a loop above it (lu.c:88 (blts)) has the same call site"},
		{"a group of two minds", edit("offset: 0x1500\n  runtime: libomp\n  group: 1\n  schedule: static-inverse", "offset: 0x1500\n  runtime: libomp\n  group: 1\n  schedule: nodes\n  nodes: [1, 0, 3, 2]"), "loops of a group are permuted alike"},
		{"unknown runtime", edit("runtime: libgomp", "runtime: tbb"), `runtime "tbb" is not`},
		{"nodes", edit("topology: 4x2", "topology: 2x4"), "topology 2x4 has 2 nodes, but nodes is 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || p != nil {
				t.Fatalf("got %v, %v; want an error with %q", p, err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
			if _, ok := errors.AsType[*FormatError](err); !ok {
				t.Errorf("%T is not a FormatError", err)
			}
			if (c.name == "newer") != errors.Is(err, ErrVersion) {
				t.Errorf("errors.Is(ErrVersion) is %v", c.name != "newer")
			}
		})
	}
}

// TestTruncated cuts a plan at every byte: none may read as a whole plan.
func TestTruncated(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, whole()); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(b.String())
	for i := range text {
		if _, err := Read(strings.NewReader(text[:i])); err == nil {
			t.Fatalf("cut after %d of %d bytes it still reads", i, len(text))
		}
	}
}

func TestReadTolerates(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, whole()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"---\n" + b.String(),
		b.String() + "\n\n",
		strings.ReplaceAll(b.String(), "\n", "\r\n"),
		strings.ReplaceAll(b.String(), "\n\n", "\n# a remark of mine\n\n"),
	} {
		if _, err := Read(strings.NewReader(text)); err != nil {
			t.Errorf("%v in\n%.300s", err, text)
		}
	}
}

func TestWriteChecks(t *testing.T) {
	p := whole()
	p.Objects[0].Name = "two\nlines"
	if err := Write(new(bytes.Buffer), p); err == nil {
		t.Error("a name of two lines is written")
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, whole()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add("numaopt-plan: 1\nfrom: &a {nodes: 4}\npredicted: *a\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Read(strings.NewReader(text))
		if err != nil {
			if p != nil {
				t.Error("a plan comes with an error")
			}
			return
		}
		var out bytes.Buffer
		if err := Write(&out, p); err != nil {
			t.Fatalf("a plan that was read is not written: %v", err)
		}
		again, err := Read(&out)
		if err != nil {
			t.Fatalf("a plan that was written is not read: %v", err)
		}
		if d := cmp.Diff(p, again, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-first +second):\n%s", d)
		}
	})
}
