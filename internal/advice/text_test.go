package advice

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/shape"
)

// A text takes the place of its loop, and of nothing else in its lines.
func TestInstead(t *testing.T) {
	for _, c := range []struct {
		file, code string
		from, to   int
		text       string
	}{
		{"a.c", "void f(void) {\n#pragma omp parallel for\nfor (int i = 0; i < 9; i++) a[i] = 1;}\n", 2, 3, "X\n}\n"},
		{"a.c", "void f(void) {\n#pragma omp parallel for\nfor (int i = 0; i < 9; i++)\n\ta[i] = 1; /* one */\n}\n", 2, 4, "X\n/* one */\n"},
		{"a.c", "#pragma omp parallel for\nfor (int i = 0; i < 9; i++) a[i] = 1;", 1, 2, "X\n"},
		{"a.f90", "!$omp parallel\n!$omp do\ndo i = 1, 9\n a(i) = 1\nend do\n!$omp end do\n!$omp end parallel\n", 2, 6, "X\n"},
		{"a.f90", "!$omp parallel\n!$omp do\ndo i = 1, 9\n a(i) = 1\nend do\n!$omp end parallel\n", 2, 5, "X\n"},
		{"a.f90", "!$omp parallel\n!$omp do\ndo i = 1, 9\n a(i) = 1\nend do\n!$omp end do nowait\n!$omp end parallel\n", 2, 6, "X\n"},
		{"a.f90", "!$omp parallel do\ndo i = 1, 9\n a(i) = 1\nend do\n!$omp end parallel do\n!$omp end parallel\n", 1, 5, "X\n"},
	} {
		f := parse(c.file, c.code)
		n := &nest{file: f, par: f.loops[0]}
		if got := n.instead(&profile.Region{File: c.file}, "X\n"); got.From != c.from || got.To != c.to || got.Text != c.text {
			t.Errorf("%s\ngot  %d-%d %q\nwant %d-%d %q", c.code, got.From, got.To, got.Text, c.from, c.to, c.text)
		}
	}
}

// Bounds for a loop that is not understood start threads only where its directive does.
func TestSkeletonTeam(t *testing.T) {
	for _, c := range []struct {
		file, code string
		line       int
		parallel   bool
	}{
		{"a.c", "#pragma omp parallel for\nfor (i = 0; i < n; i++) g(i);\n", 1, true},
		{"a.c", "#pragma omp parallel\n{\n#pragma omp for\nfor (i = 0; i < n; i++) g(i);\n}\n", 3, false},
		{"a.c", "#pragma omp parallel\n{\n#pragma omp for\nfor (i = 0; i < n; i++) g(i);\n#pragma omp for\nfor (i = 0; i < n; i++) h(i);\n}\n", 1, false},
		{"a.f90", "!$omp parallel\n!$omp do\ndo i = 1, n\ncall g(i)\nend do\n!$omp end parallel\n", 2, false},
		{"a.f90", "!$omp parallel do\ndo i = 1, n\ncall g(i)\nend do\n", 1, true},
		{"gone.c", "", 1, true},
	} {
		for _, axes := range [][]int{{0, 1}, {0}} {
			f := &finder{p: &profile.Profile{Regions: []profile.Region{{Name: fmt.Sprintf("%s:%d (f)", c.file, c.line), File: c.file, Line: c.line}}}, files: make(map[string]*file)}
			f.opt.Read = func(name string) []byte {
				if name == "gone.c" {
					return nil
				}
				return []byte(c.code)
			}
			x := &family{f: f, axes: axes}
			u, m := &use{}, &member{name: "a", layout: newLayout([]int64{9, 9}, 8, []int{0, 1}, 4)}
			x.read(u)
			text := x.skeletonC(u, m)
			if strings.HasSuffix(c.file, "f90") {
				text = x.skeletonFortran(u, m)
			}
			if lost := strings.Contains(text, fmt.Sprintf("%s:%d (f), whose source is not found", c.file, c.line)); lost != (c.code == "") {
				t.Errorf("%s:\n%s", c.file, text)
			}
			if got := strings.Contains(text, "omp parallel"); got != c.parallel || !got && !strings.Contains(text, "omp barrier") {
				t.Errorf("%s\n%s", c.code, text)
			}
		}
	}
}

// Memory is distributed after the statement that allocates it.
func TestAssigned(t *testing.T) {
	for _, c := range []struct {
		file, code string
		line, want int
	}{
		{"a.c", "int n;\nu = malloc(n);\n", 2, 2},
		{"a.c", "u =\n  malloc(\n  n);\nuse(u);\n", 1, 3},
		{"a.c", "v = malloc(n); u = malloc(n);\n", 1, 1},
		{"a.c", "void *get(void) { return malloc(n); }\n", 1, 0},
		{"a.c", "if (u == malloc(n)) {}\n", 1, 0},
		{"a.c", "u = malloc(n);\n", 9, 0},
		{"a.f90", "allocate(v(m,n), u(m,n))\n", 1, 1},
		{"a.f90", "allocate(v(m,n), &\n  u(m,n))\n", 1, 2},
		{"a.f90", "allocate(v(m,n))\n", 1, 0},
		{"gone.c", "", 1, 0},
	} {
		f := &finder{files: make(map[string]*file)}
		f.opt.Read = func(name string) []byte {
			if name == "gone.c" {
				return nil
			}
			return []byte(c.code)
		}
		if got := f.assigned("u", ident.Location{File: c.file, Line: c.line}); got != c.want {
			t.Errorf("%q, line %d: %d, want %d", c.code, c.line, got, c.want)
		}
	}
}

// Of several arrays each is distributed where it is allocated, and globals where main
// begins.
func TestMade(t *testing.T) {
	site := func(line int) profile.Site {
		return profile.Site{Frames: []ident.Code{{Inlined: []ident.Location{{File: "a.c", Line: line}}}}}
	}
	f := &finder{files: make(map[string]*file), p: &profile.Profile{
		Objects: []profile.Object{{Kind: profile.Heap, Site: 0}, {Kind: profile.Global, Site: -1}, {Kind: profile.Heap, Site: 1}},
		Sites:   []profile.Site{site(2), site(9)},
	}}
	f.opt.Read = func(string) []byte { return []byte("int main(void) {\nu = malloc(9);\n}\n") }
	x := &family{f: f}
	for i, name := range []string{"u", "g", "w"} {
		x.members = append(x.members, &member{name: name, objects: []int{i}})
	}
	var got []string
	for _, c := range x.made([]string{"U", "G", "W"}, func(s string) string { return "<" + s + ">" }) {
		got = append(got, c.Where+c.Text)
	}
	want := "before g is first used, as at the start of main<G>; after a.c:2, where u is allocated<U>; as soon as w is allocated (a.c:9) and before its memory is touched<W>"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// TestNotPadded: which arrays cannot have longer rows, and why.
func TestNotPadded(t *testing.T) {
	for _, c := range []struct {
		file, symbol string
		source       shape.Source
		unnamed      bool
		want         string
	}{
		{"a.c", "a", shape.Declared, false, ""},
		{"a.c", "", shape.Inferred, true, "its variable is not known"},
		{"a.cpp", "a", shape.Declared, false, "C++ has no arrays of variable rows"},
		{"a.f90", "__m_MOD_a", shape.Declared, false, ""},
		{"a.f90", "", shape.Allocated, false, ""},
		{"a.f90", "", shape.Inferred, false, "its bounds are not known"},
		{"a.f90", "flds_(a)", shape.Declared, false, "a COMMON block gives its members their places"},
	} {
		object := profile.Object{Kind: profile.Global, Symbol: c.symbol}
		x := &family{f: &finder{p: &profile.Profile{Objects: []profile.Object{object}, Regions: []profile.Region{{File: c.file}}}}, loops: []*use{{}}}
		m := &member{name: "a", unnamed: c.unnamed, shape: shape.Shape{Source: c.source}, objects: []int{0},
			layout: newLayout([]int64{126, 126}, 512, []int{0, 1}, 4), padded: true}
		got := x.notPadded(m)
		if got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%+v: %q", c, got)
		}
		if x.unpad(m, "because"); m.padded || !strings.HasSuffix(m.unpadded, ": because.") {
			t.Errorf("%+v: %q", c, m.unpadded)
		}
	}
}

// A skeleton has the bounds of the program's own loops, each sweep its own, or what no
// compiler takes: never those of the array.
func TestSkeletonBounds(t *testing.T) {
	const c, fortran = "#pragma omp parallel for\nfor (int k = 1; k < n - 1; k++)\n%s\n", "!$omp parallel do\ndo k = 2, n - 1\n%s\nend do\n"
	f90 := func(lo, hi, step string) string {
		return "do j = " + lo + ", " + hi + step + "\n a(j, k) = a(j, k) + 1\nend do\n"
	}
	for _, x := range []struct{ file, code, want string }{
		{"a.c", fmt.Sprintf(c, "{ for (int j = 3; j < n - 2; j++) a[k][j] += a[k][j - 1]; for (int j = n - 5; j >= 4; j--) a[k][j] -= a[k][j + 1]; }"),
			"X, phase, 3, n - 2, | X, phase, 1, n - 1, | X, phase, 4, n - 5 + 1, | X, phase, 1, n - 1, "},
		{"a.c", fmt.Sprintf(c, "{ int m = g(k); for (int j = 1; j < m; j++) a[k][j] = 0; for (int j = 1; j < m; j++) a[k][j] = 0; }"),
			"X, phase, <first Y>, <end of Y>, | X, phase, 1, n - 1, "},
		{"a.c", fmt.Sprintf(c, "g(a, k);"), "X, phase, <first Y>, <end of Y>, | X, phase, <first X>, <end of X>, "},
		{"a.f90", fmt.Sprintf(fortran, f90("3", "n - 2", "")+f90("n - 5", "4", ", -1")),
			"X, phase, 3, n - 2, | X, phase, 2, n - 1, | X, phase, 4, n - 5, | X, phase, 2, n - 1, "},
		{"a.f90", fmt.Sprintf(fortran, "call g(a, k)"), "X, phase, <first Y>, <last Y>, | X, phase, <first X>, <last X>, "},
	} {
		f := &finder{p: &profile.Profile{Regions: []profile.Region{{Name: "a", File: x.file, Line: 1}}}, files: make(map[string]*file)}
		f.opt.Read = func(string) []byte { return []byte(x.code) }
		m := &member{name: "a", layout: newLayout([]int64{99, 99}, 8, []int{0, 1}, 4)}
		family, u := &family{f: f, axes: []int{0, 1}, members: []*member{m}}, &use{}
		family.read(u)
		text := family.skeletonC(u, m)
		if strings.HasSuffix(x.file, "f90") {
			text = family.skeletonFortran(u, m)
		}
		var got []string
		for _, l := range regexp.MustCompile(`numaopt_(?:phase|part)\(&?a_dist, NUMAOPT_(\w, phase, \S[^&\n]*?, )(?:&|y0|omp_)`).FindAllStringSubmatch(text, -1) {
			got = append(got, l[1])
		}
		if s := strings.Join(got, "| "); u.nest != nil || s != x.want {
			t.Errorf("%s\ngot  %s\nwant %s\n%s", x.code, s, x.want, text)
		}
	}
}

// The declarations of a Fortran program without a module are its own.
func TestModuleOf(t *testing.T) {
	for code, want := range map[string]string{
		"module fields\nend module\n":                                 "in a module of a.f90, as fields",
		"! module no\nprogram p\ncontains\nmodule procedure q\nend\n": "a.f90 has no module: among the declarations of program p, ",
		"subroutine s\nend\n":                                         "a.f90 has no module: in a new one that its loops use",
	} {
		f := &finder{files: make(map[string]*file)}
		f.opt.Read = func(string) []byte { return []byte(code) }
		if got := f.moduleOf("a.f90"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}

// The second loop of a line is replaced in it.
func TestSharedLine(t *testing.T) {
	f := parse("a.f90", "!$omp parallel do\ndo k = 1, n\n  do m = 1, 5; do j = 2, n; do i = 1, n\n    a(i, j, k) = m\n  end do; end do; end do\nend do\n")
	n := &nest{file: f, par: f.loops[0], ser: f.loops[2], team: true}
	if why := n.perfect(); why != "" {
		t.Error(why)
	}
	m := &member{name: "a", layout: newLayout([]int64{9, 9, 9}, 8, []int{1, 2}, 4)}
	text := (&family{axes: []int{1, 2}}).loopFortran(&use{axis: 1, nest: n}, m)
	if want := "do m = 1, 5; do j = j0, j1\n        do i = 1, n\n          a(i, j, k) = m\n        end do; end do; end do\n"; !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
}

// Only what is padded is said to be.
func TestWhyParts(t *testing.T) {
	for padded, want := range map[bool]string{true: "rows become longer, and the parts whole pages", false: "up to 3.0 % of these accesses stay remote there"} {
		x := &family{members: []*member{{loss: 0.03}, {padded: padded}}}
		if got := x.whyParts(); !strings.Contains(got, want) || strings.Contains(got, "longer") != padded {
			t.Errorf("%s", got)
		}
	}
}
