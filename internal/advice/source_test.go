package advice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loops is one line for each loop: its header as it is understood, its lines, and how
// deep it is in the nest.
func (f *file) String() string {
	var b strings.Builder
	for _, l := range f.loops {
		depth := 0
		for p := l.parent; p != nil; p = p.parent {
			depth++
		}
		fmt.Fprintf(&b, "%s%s [%s, %s) %d-%d", strings.Repeat("  ", depth), l.Var, l.Lo, l.Hi, l.Line, f.line(l.after-1))
		if l.Down {
			b.WriteString(" down")
		}
		if l.pragma != "" {
			b.WriteString(" " + l.pragma)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"plain forms", "a.c", `
for (int x = 0; x < n; x++) ;
for (long x = 1; x <= n - 1; ++x) f(x);
for (x = n - 1; x >= 0; x--) { f(x); }
for (size_t x = n; x > lo; x -= 1) f(x);
for (int x = 0; n > x; x++) f(x);
for (int x = 0; x < n; x += 2) f(x);
for (int x = 0, y = 0; x < n; x++) f(x);`, `x [0, n) 2-2
x [1, n) 3-3
x [0, n) 4-4 down
x [lo + 1, n + 1) 5-5 down
 [, ) 6-6
 [, ) 7-7
 [, ) 8-8
`},
		{"nests and directives", "a.cpp", `
void f() {
	for (int x = 1; x < NX - 1; x++) // for (int no = 0; no < 1; no++)
#pragma omp parallel for \
	schedule(static) private(s)
		for (int y = 0; y < NY; y++) {
			if (y) { g("for (;;) {"); } else for (int z = 0; z < 3; z++) h();
		}
	i();
}`, `x [1, NX - 1) 3-8
  y [0, NY) 6-8 omp parallel for schedule(static) private(s)
    z [0, 3) 7-7
`},
		{"a macro that is a loop", "a.c", `
#pragma omp parallel for
for (int j = 1; j < N; j++)
	POINTS(j, k, i) {
		a[j] = 1;
	}
for (int k = 0; k < N; k++)
	b[k] = 1;`, `j [1, N) 3-6 omp parallel for
k [0, N) 7-8
`},
		{"unfinished", "a.c", "for (int j = 1; j < N; j++) { f(", "j [1, N) 1-1\n"},
		{"Fortran", "a.F90", `
!$omp parallel do private(i, &
!$omp j) schedule(static)
do k = 2, nz - 1 ! do not
  outer: do j = ny - 1, 2, -1
    do while (x)
    end do
  enddo outer
  print *, 'do i = 1, 2'
end do
!$omp end parallel do
do 10 i = 1, 3`, `k [2, nz - 1] 4-11 omp parallel do private(i, j) schedule(static)
  j [2, ny - 1] 5-8 down
`},
		{"Fortran, several statements in a line", "a.f90", `
!$omp parallel do
do k = 1, n; x = ';'; do m = 1, 5; do j = 2, n - 1
  a(j, k) = x; b(j) = 1 ; ! do i = 1, 2
end do; end do; end do
!$omp end parallel do
do i = 1, 3; a(i) = 0; end do; do i = 4, 5; a(i) = 1; end do`, `k [1, n] 3-6 omp parallel do
  m [1, 5] 3-5
    j [2, n - 1] 3-5
i [1, 3] 7-7
i [4, 5] 7-7
`},
	} {
		f := parse(c.file, c.text)
		got := f.String()
		if f.language == Fortran {
			got = strings.ReplaceAll(got, ") ", "] ")
			got = strings.Replace(got, "j] schedule", "j) schedule", 1)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	if parse("a.rs", "for x in 0..n {}") != nil {
		t.Error("Rust is understood")
	}
}

// The loop that a line of a profile means: gcc's are those of the directive, clang's
// those of the header.
func TestAt(t *testing.T) {
	f := parse("a.c", `void f(void) {
#pragma omp parallel
	{
		#pragma omp for
		for (int i = 0; i < n; i++)
			a[i] = 1;
		#pragma omp for
		for (int i = n - 1; i >= 0; i--)
			a[i] += 1;
	}
}`)
	for line, want := range map[int]int{4: 5, 5: 5, 6: 5, 7: 8, 9: 8, 2: 0, 11: 0} {
		got := 0
		if l := f.at(line); l != nil {
			got = l.Line
		}
		if got != want {
			t.Errorf("line %d: loop of line %d, want %d", line, got, want)
		}
	}
	if got := len(f.region(2)); got != 2 {
		t.Errorf("the region has %d loops", got)
	}
	if got := len(f.region(99)); got != 0 {
		t.Errorf("a line beyond the file: %d loops", got)
	}
}

func TestSubscripts(t *testing.T) {
	for _, c := range []struct{ file, code, want string }{
		{"a.c", "u[k][j - 1][i] = f(u, &u[k + 1][b[j]], uu[3]);", "[k j - 1 i] [] [k + 1 b[j]]"},
		{"a.c", "u[i * n + j] += u[(i - 1) * n + j + 1] * u[i + j * n];", "[i j] [i- 1 j + 1] [i + j * n]"},
		{"a.f90", "u(m, i, j - 1, k) = u(:, f(i, 2), j, k)", "[k j - 1 i m] [k j f(i, 2) :]"},
	} {
		f := parse(c.file, c.code)
		got := strings.Trim(fmt.Sprint(f.subscripts(f.code, "u")), "[]")
		if got != strings.Trim(c.want, "[]") {
			t.Errorf("%s: %s, want %s", c.code, got, c.want)
		}
	}
}

func TestOffset(t *testing.T) {
	for subscript, want := range map[string]string{
		"x": "0 true", "x - 1": "-1 true", "x+12": "12 true", "xx": "0 false", "2 * x": "0 false", "x + n": "0 false", "1": "0 false", "x - 1 + 1": "0 false",
	} {
		k, ok := offset(subscript, "x")
		if got := fmt.Sprint(k, " ", ok); got != want {
			t.Errorf("%q: %s, want %s", subscript, got, want)
		}
	}
}

func TestPlusOne(t *testing.T) {
	for in, want := range map[string]string{"n - 1": "n", "n": "n + 1", "(a - 1": "(a - 1 + 1", "n - 2": "n - 1", "0": "1", "n - 3": "n - 3 + 1"} {
		if got := plusOne(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Whatever a file holds, loops lie within it, and in each other.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"for (", "for (int i = 0; i < n; i++", "#pragma omp parallel for\nfor (i = 0; i < n; i++) a[i * n + j", "if (x) else", "do i = 1, 2\nend do", "!$omp parallel do &\n!$omp x\ndo i = n, 1, -1\n", "f() {", "#pragma omp for\\"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, fortran bool) {
		name := "a.c"
		if fortran {
			name = "a.f90"
		}
		x := parse(name, text)
		if len(x.code) != len(text) {
			t.Fatalf("%d bytes of code for %d of text", len(x.code), len(text))
		}
		for _, l := range x.loops {
			if l.directive > l.head || l.head > l.start || l.start > l.end || l.end > l.after || l.after > len(text) {
				t.Fatalf("loop %+v of %d bytes", l, len(text))
			}
			x.subscripts(x.code[l.start:l.end], "a")
		}
		for line := range len(x.lines) + 2 {
			x.at(line)
			x.region(line)
		}
	})
}

// TestCalls: the functions that a loop's text calls, but those that touch no data.
func TestCalls(t *testing.T) {
	for _, x := range []struct{ name, text, want string }{
		{"a.c", "for (int i = 0; i < n; i++) { if (i > 2) a[i] = sqrt(b[i]) + f (c, i); g(h(a)); f(a, 1); // z(1)\n}\n", "f g h"},
		{"a.f90", "do i = 1, n\n call solve(a(:, i), i)\n b(i) = sqrt(c(i))\n if (x(i) > 1) CALL Other\nend do\n", "solve Other"},
		{"a.c", "for (int i = 0; i < n; i++) a[i] = (double)(i % 3) * (int)b[i];\n", ""},
	} {
		f := parse(x.name, x.text)
		if got := strings.Join(f.calls(f.loops[0]), " "); got != x.want {
			t.Errorf("%s: %q, want %q", x.text, got, x.want)
		}
	}
}
