package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// line is code of a function that begins at line 10.
func line(function string, n int) ident.Code {
	return ident.Code{Inlined: []ident.Location{{File: "src/a.c", Function: function, Line: n, FunctionLine: 10}}}
}

func TestStableNames(t *testing.T) {
	p := profiletest.Draw(2, 1, "a.c:13 (f) heap: 0 1", "a.c:17 (g(int)) heap: 0 1", "x small: 0 1",
		"u in a.c global: 0 1", "lib.so+0x12 heap: 0 1", "a.c:19 (wrap) heap: 0 1", "a.c:19 (wrap) heap: 0 1", "a.c:19 (wrap) heap: 0 1", "s stack: 0 1")
	g := line("g(int)", 17)
	p.Objects[1].Name, p.Objects[2].Name = "a.c:17 (g)", "small objects of a.c:17 (g) #2"
	p.Sites[0].Frames = []ident.Code{{Symbol: "xmalloc", Module: -1}, line("f", 13), line("main", 90)}
	p.Sites[1].Frames, p.Sites[2].Frames = []ident.Code{g}, []ident.Code{g}
	p.Sites[3].Frames = []ident.Code{{Module: 0, Offset: 0x12}}
	wrap := line("wrap", 19)
	p.Sites[4].Frames = []ident.Code{wrap, line("main", 20)}
	p.Sites[5].Frames = []ident.Code{wrap, line("main", 21)}
	p.Sites[6].Frames = []ident.Code{wrap, line("main", 21)}
	groups, _ := Groups(p)
	want := []string{"f+3 in a.c", "g+7 in a.c", "small objects of g+7 in a.c", "u in a.c", "lib.so+0x12",
		"wrap+9 in a.c from main+10 in a.c", "wrap+9 in a.c from main+11 in a.c", "wrap+9 in a.c from main+11 in a.c #2", "thread stacks"}
	if d := cmp.Diff(want, StableNames(p, groups)); d != "" {
		t.Error(d)
	}
}

func TestStableRegion(t *testing.T) {
	none := ident.Code{Module: -1}
	region, loop := line("solve", 14), line("solve", 16)
	region.Offset, loop.Offset = 0x100, 0x108
	p := &profile.Profile{Modules: []ident.Module{{Path: "/bin/app"}}}
	for _, c := range []struct {
		r    profile.Region
		want string
	}{
		{profile.Region{Kind: profile.Loop, Name: "a.c:14 (solve)", Code: region, Site: none}, "solve+4 in a.c"},
		{profile.Region{Kind: profile.Loop, Name: "a.c:16 (solve)", Code: region, Site: loop}, "solve+6 in a.c"},
		{profile.Region{Kind: profile.Loop, Name: "app+0x500", Code: ident.Code{Offset: 0x500}, Site: none}, "app+0x500"},
		{profile.Region{Kind: profile.Function, Name: "solve", Code: region, Site: none}, "solve"},
		{profile.Region{Kind: profile.Serial, Name: "serial", Code: none, Site: none}, "serial"},
		{profile.Region{Kind: profile.Loop, Code: ident.Code{Offset: 0x500}, Site: none}, "app+0x500"},
	} {
		if got := StableRegion(p, &c.r); got != c.want {
			t.Errorf("%s: %q, want %q", c.r.Name, got, c.want)
		}
	}
}
