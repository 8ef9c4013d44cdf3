package shape

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
)

func TestParse(t *testing.T) {
	for _, x := range []struct {
		text, object string
		want         Shape
		err          string
	}{
		{"u=64,32,5:8", "u", Shape{Dims: []int64{64, 32, 5}, Elem: 8, Source: Given}, ""},
		{"a=b.c:3 (f)=7:1", "a=b.c:3 (f)", Shape{Dims: []int64{7}, Elem: 1, Source: Given}, ""},
		{"u", "", Shape{}, "want OBJECT="},
		{"=5:8", "", Shape{}, "want OBJECT="},
		{"u=64,32", "", Shape{}, "bytes of an element are missing"},
		{"u=NX,NY:8", "", Shape{}, `dimension "NX" is not a positive number`},
		{"u=64,-1:8", "", Shape{}, `dimension "-1" is not`},
		{"u=64,,2:8", "", Shape{}, `dimension "" is not`},
		{"u=64:0", "", Shape{}, `element size "0" is not`},
		{"u=99999999999999999999:8", "", Shape{}, "is too large"},
		{"u=4000000000,4000000000:8", "", Shape{}, "more memory than there is"},
	} {
		object, s, err := Parse(x.text)
		if d := cmp.Diff(x.want, s); object != x.object || d != "" {
			t.Errorf("%s: %q (-want +got)\n%s", x.text, object, d)
		}
		if x.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %v, want %q", x.text, err, x.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("u=64,32,5:8")
	f.Add("a=b=1:2")
	f.Fuzz(func(t *testing.T, text string) {
		if name, s, err := Parse(text); err == nil {
			if name == "" || s.Bytes() <= 0 || len(s.Dims) == 0 {
				t.Errorf("%q: %q %v", text, name, s)
			}
		}
	})
}

func TestStrides(t *testing.T) {
	for _, x := range []struct {
		shape Shape
		want  []int64
		text  string
	}{
		{Shape{Dims: []int64{64, 32, 5}, Elem: 8}, []int64{1280, 40}, "64 × 32 × 5 of 8 B"},
		{Shape{Dims: []int64{64}, Elem: 8}, nil, "64 of 8 B"},
		{Shape{Dims: []int64{64, 16}, Elem: 4096, Source: Inferred}, []int64{65536, 4096}, "64 × 16 rows of 4 KiB"},
	} {
		if d := cmp.Diff(x.want, x.shape.Strides()); d != "" {
			t.Errorf("%v: %s", x.shape, d)
		}
		if s := x.shape.String(); s != x.text {
			t.Errorf("%s, want %s", s, x.text)
		}
	}
}

func TestInfer(t *testing.T) {
	for _, x := range []struct {
		bytes   int64
		periods []int64
		want    []int64 // dimensions, and the row
	}{
		{1 << 20, []int64{1 << 14}, []int64{64, 1 << 14}},
		{1 << 20, []int64{1 << 10, 1 << 14}, []int64{64, 16, 1 << 10}},
		{1 << 20, []int64{1 << 14, 3 << 12}, []int64{64, 1 << 14}}, // 4 : 3
		{1 << 20, []int64{1<<14 + 9, 1 << 14}, []int64{64, 1<<14 + 9}},
		{1 << 20, []int64{1 << 20}, nil},
		{1 << 20, nil, nil},
	} {
		s, ok := Infer(x.bytes, x.periods)
		var got []int64
		if ok {
			got = append(s.Dims, s.Elem)
		}
		if d := cmp.Diff(x.want, got); d != "" {
			t.Errorf("%d %v: %s", x.bytes, x.periods, d)
		}
	}
}

func TestComplete(t *testing.T) {
	for _, x := range []struct {
		dims  []int64
		bytes int64
		want  int64 // first dimension, 0: does not fit
	}{
		{[]int64{10, 5}, 400, 10},
		{[]int64{10, 5}, 439, 10}, // an allocator's padding
		{[]int64{10, 5}, 440, 0},
		{[]int64{10, 5}, 399, 0},
		{[]int64{0, 5}, 400, 10},
		{[]int64{0, 5}, 39, 0},
		{[]int64{10, 0}, 400, 0},
		{nil, 400, 50},
	} {
		s, ok := Shape{Dims: x.dims, Elem: 8}.complete(x.bytes)
		if ok != (x.want > 0) || ok && s.Dims[0] != x.want {
			t.Errorf("%v in %d bytes: %v %v", x.dims, x.bytes, s, ok)
		}
	}
}

func TestAssignees(t *testing.T) {
	for line, want := range map[string]string{
		"  u = malloc(n);":                             "u",
		"double (*u)[N][M] = malloc(n * sizeof *u);":   "u",
		"double *restrict v = (double *)calloc(n, 8);": "v",
		"auto *w=new double[n];":                       "w",
		"if (!(u = malloc(n))) return 1;":              "u",
		"return malloc(n);":                            "",
		"s->u = malloc(n);":                            "",
		"s.u = malloc(n);":                             "",
		"if (x == y) f(malloc(n));":                    "",
		"u = malloc(n); v = MALLOC(n);":                "v",
		"u = MALLOC(n); v = malloc(n);":                "u",
		"u = malloc(n); f(MALLOC(n));":                 "",
		"double *u = malloc(n), *v = MALLOC(n);":       "v",
	} {
		column := max(strings.Index(line, "MALLOC"), strings.Index(line, "calloc"), strings.Index(line, "new"))
		if column < 0 {
			column = strings.Index(line, "malloc")
		}
		if got := strings.Join(assignees([]string{"int x;", line}, 2, column+1), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := assignees([]string{"u = malloc(n); v = malloc(n);"}, 1, 0); len(got) != 2 {
		t.Errorf("without a column: %v", got)
	}
}

func TestAllocate(t *testing.T) {
	text := strings.Split(`program p
  integer, parameter :: NX = 36, ny = 2*nx + 8 ! columns
  integer :: n
  parameter (nz=3)
  allocate(v(nx, 0:ny+1, &  ! two more
    & n), w(NZ), stat=ierr)
  allocate(s%a(nx), q)
  allocate(real(8) :: x(nz, nx))
`, "\n")
	want := []symbol.Array{{Variable: "v", Dims: []int64{0, 82, 36}}, {Variable: "w", Dims: []int64{3}}}
	if d := cmp.Diff(want, allocate(text, 5, 0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := allocate(text, 8, 0); len(got) != 1 || got[0].Variable != "x" {
		t.Errorf("%+v", got)
	}
	if got := allocate(text, 7, 0); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestExtent: literals are Fortran's, with kinds and leading zeros; 0 is not known.
func TestExtent(t *testing.T) {
	constants := parameters([]string{"integer, parameter :: ik = 8, n = 0100_ik, n2 = 010", "real, parameter :: r = 2.5"})
	for bounds, want := range map[string]int64{
		"5": 5, "100_8": 100, "64_ik": 64, "0100": 100, "007_4": 7, "0": 0, "n": 100, "n2": 10, "2*n_8": 0, "2*n+01_ik": 201,
		"0:n-1": 100, "-1_8:010": 12, "8_8/3_8": 2, "2.0*3": 0, "1.05": 0, "r": 0, "'8'": 0, "2**3": 0, "1d1": 0, "mod(n,3)": 0,
	} {
		if got := extent(bounds, constants); got != want {
			t.Errorf("%s: %d, want %d", bounds, got, want)
		}
	}
}

// TestAllocateColumn tells statements in one line apart; gfortran's column is behind each.
func TestAllocateColumn(t *testing.T) {
	text := []string{"  allocate(u(n,5)); allocate(rhs(n,5), &", "    v(n,7)); allocate(w(2))"}
	for column, want := range map[int]string{0: "u rhs v w", 3: "u", 19: "u", 20: "rhs v", 38: "rhs v", 99: "rhs v"} {
		var got []string
		for _, a := range allocate(text, 1, column) {
			got = append(got, a.Variable)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("column %d: %q, want %q", column, s, want)
		}
	}
}

// TestSet: a name is that of one object.
func TestSet(t *testing.T) {
	p := &profile.Profile{Objects: []profile.Object{
		{Kind: profile.Heap, Name: "a.c:5 (main)", Bytes: 80000, Module: -1, Site: 0},
		{Kind: profile.Heap, Name: "a.c:5 (main)", Bytes: 80000, Module: -1, Site: 1},
	}, Sites: make([]profile.Site, 2)}
	for given, want := range map[string]string{
		"a.c:5 (main)=100,100:8":    "[0]",
		"a.c:5 (main) #2=100,100:8": "[1]",
		"a.c:5=100,100:8":           "--shape a.c:5=100,100:8: a.c:5 is not one object but a.c:5 (main), a.c:5 (main) #2; give one of these names",
		"u=100,100:8":               "--shape u=100,100:8: u is not one object but a.c:5 (main), a.c:5 (main) #2; give one of these names",
	} {
		shapes := map[int]Shape{0: {Variable: "u"}, 1: {Variable: "u"}}
		got := ""
		if err := set(p, shapes, given); err != nil {
			got = err.Error()
		} else {
			var list []int
			for i, s := range shapes {
				if s.Source == Given {
					list = append(list, i)
				}
			}
			got = fmt.Sprint(list)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// TestFit tells variables that one line allocates apart by the size of the object.
func TestFit(t *testing.T) {
	of := func(source Source, name string, elem int64, dims ...int64) candidate {
		return candidate{symbol.Array{Variable: name, Dims: dims, Elem: elem}, source}
	}
	v, w := of(Allocated, "v", 0, 80, 82, 36), of(Allocated, "w", 0, 80, 36)
	for _, x := range []struct {
		list  []candidate
		bytes int64
		want  string // the shape, its variable, the doubt
	}{
		{[]candidate{v, w}, 80 * 82 * 36 * 8, "80 × 82 × 36 of 8 B v "},
		{[]candidate{v, w}, 80 * 36 * 4, "80 × 36 of 4 B w "},
		{[]candidate{w, w}, 80 * 36 * 8, "80 × 36 of 8 B  one of w, w, which one line allocates"},
		{[]candidate{v, w}, 80*36*8 + 1, "none"},
		{[]candidate{of(Allocated, "v", 8, 0, 36)}, 80 * 36 * 8, "80 × 36 of 8 B v "},
		{[]candidate{of(Allocated, "v", 8, 36, 0)}, 80 * 36 * 8, "36 × 80 of 8 B v "},
		{[]candidate{of(Allocated, "v", 0, 0, 36)}, 80 * 36 * 8, "  the bounds of v are set at run time"},
		{[]candidate{of(Allocated, "v", 8, 0, 0), w}, 80 * 36 * 8, "  the bounds of v are set at run time"},
		{[]candidate{of(Declared, "u", 8, 0, 32, 5), of(Declared, "rho", 8, 0, 32)}, 64 * 32 * 5 * 8, "  it is one of u, rho, which one line allocates; their shapes differ"},
		{[]candidate{of(Declared, "u", 8, 0, 0)}, 4096, "  the bounds of u are set at run time"},
	} {
		f := &finder{sites: map[int][]candidate{0: x.list}}
		s, ok := f.allocated(&profile.Object{Bytes: x.bytes})
		got := "none"
		if ok {
			got = fmt.Sprintf("%s %s %s", "", s.Variable, s.Doubt)
			if len(s.Dims) > 0 {
				got = fmt.Sprintf("%v %s %s", s, s.Variable, s.Doubt)
			}
		}
		if got != x.want {
			t.Errorf("%v in %d bytes: %q, want %q", x.list, x.bytes, got, x.want)
		}
	}
}

// TestFind asks a compiled program for a global and two allocations.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	text := `#include <stdlib.h>
double u[64][32][5];
double (*grid)[100];
int main(int argc, char **argv) {
    double (*rows)[10]; grid = malloc(800 * argc); rows = malloc(8000 * argc);
    u[argc][2][3] = grid[0][argc] = rows[0][argc] = 1;
    return argv[0][0] == u[1][2][3];
}
`
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O1", source, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table := &symbol.Table{}
	m, err := table.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	p := &profile.Profile{
		Modules: []ident.Module{{Path: program, BuildID: m.BuildID()}},
		Sites:   []profile.Site{{Frames: []ident.Code{returnTo(t, m, source, 5)}}},
		Objects: []profile.Object{
			{Kind: profile.Global, Name: "u in a.c", Symbol: "u", Offset: m.Objects("u")[0].VAddr, Bytes: 64 * 32 * 40, Site: -1},
			{Kind: profile.Heap, Name: "a.c:5 (main)", Bytes: 80000, Module: -1},
			{Kind: profile.Heap, Name: "a.c:5 (main)", Bytes: 799, Module: -1, Ordinal: 1},
		},
	}
	declared := map[int]Shape{
		0: {Dims: []int64{64, 32, 5}, Elem: 8, Source: Declared, Variable: "u"},
		1: {Dims: []int64{100, 100}, Elem: 8, Source: Declared, Variable: "grid"},
	}
	find := func(given ...string) map[int]Shape {
		t.Helper()
		shapes, err := Find(p, table, given)
		if err != nil {
			t.Error(err)
		}
		return shapes
	}
	if d := cmp.Diff(declared, find()); d != "" {
		t.Errorf("declared (-want +got):\n%s", d)
	}
	declared[0] = Shape{Dims: []int64{128, 80}, Elem: 8, Source: Given}
	if d := cmp.Diff(declared, find("u=128,80:8")); d != "" {
		t.Errorf("given (-want +got):\n%s", d)
	}
	for given, want := range map[string]string{
		"u=128,81:8": "that is 81KiB, but u has 80KiB",
		"v=128,80:8": `no object is called "v"; the profile has u in a.c, a.c:5 (main)`,
		"u":          "want OBJECT=",
	} {
		if _, err := Find(p, table, []string{given}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
	p.Modules[0].BuildID = "another"
	if shapes := find(); len(shapes) > 0 {
		t.Errorf("of another build: %v", shapes)
	}
}

// returnTo is a return address of a call in a line of main.
func returnTo(t *testing.T, m *symbol.Module, file string, line int) ident.Code {
	t.Helper()
	for _, f := range m.Functions() {
		for at := f.Lo; f.Symbol == "main" && at < f.Hi; at++ {
			if c := m.ReturnSite(at); len(c.Inlined) > 0 && c.Inlined[0].Line == line {
				c.Module = 0
				return c
			}
		}
	}
	t.Fatalf("no code for %s:%d", file, line)
	return ident.Code{}
}
