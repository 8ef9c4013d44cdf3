package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

func TestGroups(t *testing.T) {
	p := profiletest.Draw(2, 1, "s stack: 0 1", "u heap: 0 1", "s stack: 1 0 1", "u heap: 0 1", "u global: 0 1", "libc image: ? 1", "app image: ? 1")
	p.Objects[3].Site = p.Objects[1].Site
	p.Objects[3].Ordinal = 1
	groups, of := Groups(p)
	var names []string
	for _, g := range groups {
		names = append(names, string(g.Kind)+" "+g.Name)
	}
	if d := cmp.Diff([]string{"stack thread stacks", "heap u", "global u", "image program and libraries"}, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{0, 1, 0, 1, 2, 3, 3}, of); d != "" {
		t.Error(d)
	}
}

func TestPeak(t *testing.T) {
	type o = profile.Object
	for _, c := range []struct {
		name    string
		objects []o
		want    int64
	}{
		{"one buffer again and again", []o{{Bytes: 100}, {Bytes: 300, Ordinal: 1}, {Bytes: 200, Ordinal: 2}}, 300},
		{"rows of a matrix", []o{{Bytes: 100}, {Bytes: 100, Ordinal: 1, Overlaps: true}, {Bytes: 100, Ordinal: 2, Overlaps: true}}, 300},
		{"one a rank", []o{{Bytes: 100}, {Bytes: 100, Rank: 1}, {Bytes: 100, Rank: 2}}, 300},
		{"two matrices, one after the other", []o{{Bytes: 100}, {Bytes: 100, Ordinal: 1, Overlaps: true}, {Bytes: 150, Ordinal: 2}}, 200},
	} {
		p := &profile.Profile{Objects: c.objects}
		var all []int
		for i := range c.objects {
			all = append(all, i)
		}
		if got := peak(p, all); int64(got) != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestNamesToldApart(t *testing.T) {
	p := profiletest.Draw(2, 1, "wrap.c:3 (xmalloc) heap: 0 1", "wrap.c:3 (xmalloc) heap: 0 1", "wrap.c:3 (xmalloc) heap: 0 1", "work global: 0 1", "work global: 0 1")
	frame := func(file, function string, line int) ident.Code {
		return ident.Code{Inlined: []ident.Location{{File: "src/" + file, Function: function, Line: line}}}
	}
	wrap := frame("wrap.c", "xmalloc", 3)
	p.Sites[0].Frames = []ident.Code{wrap, frame("a.c", "grid", 10), frame("m.c", "main", 1)}
	p.Sites[1].Frames = []ident.Code{wrap, frame("a.c", "grid", 20), frame("m.c", "main", 1)}
	p.Sites[2].Frames = []ident.Code{wrap, frame("a.c", "grid", 20), frame("m.c", "main", 2)}
	p.Modules = append(p.Modules, ident.Module{Path: "/usr/lib/libx.so"})
	p.Objects[4].Module = 1
	var names []string
	groups, _ := Groups(p)
	for _, g := range groups {
		names = append(names, g.Name)
	}
	want := []string{
		"wrap.c:3 (xmalloc) from a.c:10 (grid)", "wrap.c:3 (xmalloc) from a.c:20 (grid)", "wrap.c:3 (xmalloc) from a.c:20 (grid) #2",
		"work of app", "work of libx.so",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
}

func TestCodeName(t *testing.T) {
	p := &profile.Profile{Modules: []ident.Module{{Path: "/usr/bin/app"}, {Path: "/usr/lib/libc.so.6"}}}
	for _, c := range []struct {
		code ident.Code
		want string
	}{
		{ident.Code{Inlined: []ident.Location{{Function: "f(int)", File: "/a/b.cc", Line: 4}}}, "b.cc:4 (f)"},
		{ident.Code{Inlined: []ident.Location{{File: "/a/b.cc", Line: 4}}}, "b.cc:4"},
		{ident.Code{Inlined: []ident.Location{{Function: "f"}}, Symbol: "g"}, "f"},
		{ident.Code{Symbol: "main"}, "main in app"},
		{ident.Code{Inlined: []ident.Location{{Function: "std::fill", File: "/usr/include/c++/12/bits/x.h", Line: 9}, {Function: "f", File: "b.cc", Line: 4}}}, "b.cc:4 (f)"},
		{ident.Code{Inlined: []ident.Location{{Function: "std::fill", File: "/usr/include/c++/12/bits/x.h", Line: 9}}}, "x.h:9 (std::fill)"},
		{ident.Code{Module: 1, Symbol: "memset", Inlined: []ident.Location{{Function: "memset", File: "memset.S", Line: 9}}}, "memset in libc.so.6"},
		{ident.Code{Module: 1, Inlined: []ident.Location{{Function: "memset", File: "memset.S", Line: 9}}}, "memset in libc.so.6"},
		{ident.Code{Symbol: "main", Module: -1}, "main"},
		{ident.Code{Offset: 0x1234}, "app+0x1234"},
		{ident.Code{Module: -1}, "?"},
	} {
		if got := CodeName(p, c.code); got != c.want {
			t.Errorf("%+v: %q, want %q", c.code, got, c.want)
		}
	}
}
