package advice

import (
	"slices"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/profile/profiletest"
)

// TestMerged: the loops of a region that gcc gave one call for the thread's number.
func TestMerged(t *testing.T) {
	const text = `void f(int n) {
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < n; i++)
      a[i] = b[i];
#pragma omp for
    for (int i = n - 1; i >= 0; i--)
      b[i] = a[i];
#pragma omp for
    for (int i = 0; i < n; i++)
      nothing();
  }
}
void g(int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    a[i] = 1;
}
static inline void h(int n) {
#pragma omp for
  for (int i = 0; i < n; i++)
    c[i] = 1;
}
`
	p := profiletest.Draw(2, 1, "u heap: 0!1 9 0 | 0!1 | 1 0 7/5 0 | 0 0 0/0 3")
	r := &p.Regions[profiletest.Work]
	r.File, r.Runtime, r.Site = "w.c", "libgomp", ident.Code{Module: 0, Offset: 0x99}
	for _, x := range []struct {
		line    int
		runtime string
		code    []int // lines with code; none is not known
		want    []int
	}{
		{2, "libgomp", nil, []int{5, 8, 11}},
		{2, "libgomp", []int{2, 5, 9}, []int{5, 8}},
		{2, "libgomp", []int{2, 5}, nil},
		{2, "libgomp", []int{2, 5, 22}, []int{5, 22}}, // inlined
		{7, "libgomp", nil, nil},
		{16, "libgomp", nil, nil},
		{2, "libomp", nil, nil},
	} {
		r.Line, r.Runtime = x.line, x.runtime
		code := func(int) map[int]bool {
			lines := make(map[int]bool)
			for _, n := range x.code {
				lines[n] = true
			}
			return lines
		}
		got := Merged(p, func(string) []byte { return []byte(text) }, code)[profiletest.Work]
		if !slices.Equal(got, x.want) {
			t.Errorf("line %d of %s, code %v: %v, want %v", x.line, x.runtime, x.code, got, x.want)
		}
		if got := Merged(p, func(string) []byte { return nil }, code); len(got) > 0 {
			t.Errorf("without the source: %v", got)
		}
	}
}

// A loop that is inlined but has a region of its own is not merged.
func TestElsewhere(t *testing.T) {
	const text = "void f(void) {\n#pragma omp parallel\n {\n g();\n }\n}\nvoid g(void) {\n#pragma omp for\n for (int i = 0; i < n; i++) a[i] = 1;\n#pragma omp for\n for (int i = 0; i < n; i++) b[i] = 1;\n}\n"
	p := profiletest.Draw(2, 1, "u heap: 0!1 9 0 | 0!1 | 1 0 7/5 0 | 0 0 0/0 3")
	code := func(int) map[int]bool { return map[int]bool{2: true, 9: true, 11: true} }
	for line, want := range map[int][]int{0: {9, 11}, 9: nil} {
		for i, l := range map[int]int{profiletest.Work: 2, profiletest.Back: line} {
			r := &p.Regions[i]
			r.File, r.Line, r.Runtime, r.Site = "w.c", l, "libgomp", ident.Code{Module: 0, Offset: uint64(0x99 + i)}
		}
		if got := Merged(p, func(string) []byte { return []byte(text) }, code)[profiletest.Work]; !slices.Equal(got, want) {
			t.Errorf("another region at line %d: %v, want %v", line, got, want)
		}
	}
}

// A region that is named by the line of a procedure is of that procedure's loops.
func TestRegionOfProcedure(t *testing.T) {
	const text = "subroutine up(n)\n!$omp do\ndo i = 1, n\na(i) = 1\nend do\nend subroutine\nsubroutine down(n)\n!$omp do\ndo i = n, 1, -1\na(i) = 1\nend do\n!$omp do\ndo i = 1, n\nb(i) = 1\nend do\nend\n!$omp parallel\n!$omp do\ndo i = 1, n\na(i) = 1\nend do\n!$omp end parallel\n"
	f := parse("a.f90", text)
	for line, want := range map[int][]int{1: {3}, 7: {9, 13}, 17: {19}} {
		var got []int
		for _, l := range f.region(line) {
			got = append(got, l.Line)
		}
		if !slices.Equal(got, want) {
			t.Errorf("line %d: %v, want %v", line, got, want)
		}
	}
}
