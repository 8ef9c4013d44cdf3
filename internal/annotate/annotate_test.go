package annotate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// list draws lines as text.
func list(p *profile.Profile) string {
	groups, of := access.Groups(p)
	var b strings.Builder
	for _, l := range Lines(p, of) {
		fmt.Fprintf(&b, "%s %s:%d local %d remote %d unknown %d stores %d latency %.0f:", l.Name, l.File, l.Line, l.DRAM.Local, l.DRAM.Remote, l.DRAM.Unknown, l.Stores, l.Latency())
		for _, o := range l.Objects {
			fmt.Fprintf(&b, " %s %d", groups[o.Group].Name, o.DRAM.Total())
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestLines(t *testing.T) {
	p := profiletest.WithCode(profiletest.Draw(2, 1, "u heap: 0!8 9 3 | ? 0 5", "v global: 1!2 1 0/0 20"))
	want := `work.c:31 (back) work.c:31 local 20 remote 0 unknown 0 stores 0 latency 100: v 20
work.c:21 (work) work.c:21 local 9 remote 4 unknown 5 stores 0 latency 200: u 17 v 1
init.c:5 (main) init.c:5 local 8 remote 2 unknown 0 stores 10 latency NaN: u 8 v 2
`
	if got := list(p); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestInlined: code of a language's library is of the line that uses it; instructions of
// one line are one; where no line is known, the symbol names the code.
func TestInlined(t *testing.T) {
	p := profiletest.WithCode(profiletest.Draw(2, 1, "u heap: 0!8 9 3/1 1"))
	p.Modules = append(p.Modules, ident.Module{Path: "/usr/lib/x86_64-linux-gnu/libc.so.6"})
	own := ident.Location{Function: "f", File: "init.c", Line: 5}
	p.Codes = []ident.Code{
		{Module: 0, Inlined: []ident.Location{own}},
		{Module: 0, Offset: 9, Inlined: []ident.Location{{Function: "std::vector<int>::operator[]", File: "/usr/include/c++/12/vector", Line: 99}, own}},
		{Module: 1, Offset: 7, Symbol: "memset", Inlined: []ident.Location{{Function: "memset", File: "memset.S", Line: 3}}},
	}
	want := `init.c:5 (f) init.c:5 local 17 remote 3 unknown 0 stores 8 latency 150: u 20
memset in libc.so.6 :0 local 1 remote 1 unknown 0 stores 0 latency 200: u 2
`
	if got := list(p); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	_, of := access.Groups(p)
	files := Files(Lines(p, of))
	if len(files) != 1 || files[0].Path != "init.c" || len(files[0].Lines) != 1 || files[0].DRAM.Total() != 20 {
		t.Errorf("%+v", files)
	}
}

func TestFilesInOrder(t *testing.T) {
	p := profiletest.WithCode(profiletest.Draw(2, 1, "u heap: 0!80 1 0/5 0"))
	_, of := access.Groups(p)
	var got []string
	for _, f := range Files(Lines(p, of)) {
		for _, l := range f.Lines {
			got = append(got, fmt.Sprintf("%s:%d", f.Path, l.Line))
		}
	}
	if s := strings.Join(got, " "); s != "init.c:5 work.c:21 work.c:31" {
		t.Error(s)
	}
}

func TestNothing(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0 1")
	_, of := access.Groups(p)
	if lines := Lines(p, of); len(lines) != 0 || len(Files(lines)) != 0 {
		t.Errorf("%+v", lines)
	}
	if l := new(Line); !math.IsNaN(l.Latency()) {
		t.Error(l.Latency())
	}
}
