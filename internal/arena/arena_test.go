package arena

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func small() *Builder {
	b := NewBuilder()
	b.Note(NoteWarning, "be warned")
	m := b.Module("/bin/app", 0x1000, 0x9000)
	b.Thread(0, 0, 0)
	b.Func(m, 0x40)
	loop := b.Loop(m, 0x80, 3, 4)
	b.WorkLoop(m, 0x80, 0xa0, 12, 0)
	site := b.Site(0x1100, 0x1200)
	o := b.Object(KindHeap, site, 0, 0, 0x100000, 8192)
	p := b.Page(Page{Number: 0x100, Object: o, Home: 1, Region: loop, Module: -1, Serial: true})
	b.Block(Block{Page: p, Region: loop, Count: [4][2]uint64{{1 << 40, 2}, {3, 4}, {5, 6}, {7, 8}}, First: 2, Last: 3})
	b.Small(SmallVote{0x200, site})
	b.Use(Use{Code: Code{0x44, m, false}, Owner: PageOwner(p), Region: loop, Op: 1, Local: 1, Remote: 1 << 40, Unknown: 3})
	b.Use(Use{Code: Code{0x48, -1, false}, Owner: SiteOwner(site), Region: loop, Local: 1})
	b.Interval(Interval{Part: 7, Shift: 12, Thread: 0, Region: loop, Work: 99, Count: []uint64{1, 2, 3}})
	return b
}

func open(t testing.TB, data []byte) *Arena {
	t.Helper()
	a, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRead(t *testing.T) {
	a := open(t, small().Bytes())
	var got []string
	add := func(x any, err error) { got = append(got, fmt.Sprintf("%+v %v", x, err)) }
	add(a.Notes())
	add(a.Modules())
	add(a.Threads())
	add(a.Funcs())
	add(a.Loops())
	add(a.Sites())
	add(a.Objects())
	err := a.EachPage(func(i int, p Page) { got = append(got, fmt.Sprintf("%d %+v", i, p)) })
	add("", err)
	err = a.EachBlock(func(b *Block) { got = append(got, fmt.Sprintf("%+v", *b)) })
	add("", err)
	err = a.EachSmall(func(v SmallVote) { got = append(got, fmt.Sprintf("%+v", v)) })
	add("", err)
	err = a.EachUse(func(u *Use) {
		object, page, site := u.Owner.Of()
		got = append(got, fmt.Sprintf("%+v of %d %d %d", *u, object, page, site))
	})
	add("", err)
	err = a.EachInterval(func(v *Interval) { got = append(got, fmt.Sprintf("%+v", *v)) })
	add("", err)
	want := `[{Kind:1 Text:be warned}] <nil>
[{Lo:4096 Hi:36864 Base:4096 Path:/bin/app Dead:false}] <nil>
[{Rank:0 CPU:0 Node:0 Pinned:false}] <nil>
[{VAddr:0 Module:0 NoSymbol:false} {VAddr:64 Module:0 NoSymbol:false}] <nil>
[{Code:{VAddr:0 Module:0 NoSymbol:false} Entries:0 Dynamic:false DynamicLoops:false Site:{VAddr:0 Module:-1 NoSymbol:false} LibOMP:false Static:false Affine:false Joined:0 Sweep:0} {Code:{VAddr:128 Module:0 NoSymbol:false} Entries:3 Dynamic:false DynamicLoops:false Site:{VAddr:0 Module:-1 NoSymbol:false} LibOMP:false Static:false Affine:false Joined:0 Sweep:4} {Code:{VAddr:128 Module:0 NoSymbol:false} Entries:12 Dynamic:false DynamicLoops:false Site:{VAddr:160 Module:0 NoSymbol:false} LibOMP:true Static:true Affine:false Joined:0 Sweep:0}] <nil>
[[] [4352 4608]] <nil>
[{Addr:0 Bytes:0 Site:0 Rank:0 Ordinal:0 Kind:0 Overlaps:false File:false Name:} {Addr:1048576 Bytes:8192 Site:1 Rank:0 Ordinal:0 Kind:1 Overlaps:false File:false Name:}] <nil>
1 {Number:256 PC:0 Object:1 Home:1 Thread:0 Region:2147483649 Module:-1 Serial:true Kernel:false Placed:false}
 <nil>
{Page:1 Thread:0 Region:2147483649 Count:[[1099511627776 2] [3 4] [5 6] [7 8]] Latency:[[0 0] [0 0] [0 0] [0 0]] First:2 Last:3}
 <nil>
{Page:512 Site:1}
 <nil>
{Code:{VAddr:68 Module:0 NoSymbol:false} Owner:2147483649 Region:2147483649 Op:1 Local:1 Remote:1099511627776 Unknown:3 Page:0 Latency:0 Loads:0} of 0 1 0
{Code:{VAddr:72 Module:-1 NoSymbol:false} Owner:1073741825 Region:2147483649 Op:0 Local:1 Remote:0 Unknown:0 Page:0 Latency:0 Loads:0} of 0 0 1
 <nil>
{Part:7 Shift:12 Thread:0 Region:2147483649 Work:99 Home:-1 Count:[1 2 3]}
 <nil>`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

func TestBroken(t *testing.T) {
	whole := small().Bytes()
	for _, c := range []struct {
		name string
		data func() []byte
		want string
	}{
		{"empty", func() []byte { return nil }, "header: 0 bytes"},
		{"foreign", func() []byte { return make([]byte, 8192) }, "not an arena"},
		{"newer", func() []byte { d := bytes.Clone(whole); d[16] = 9; return d }, "version 9"},
		{"cut", func() []byte { return whole[:len(whole)-32] }, "past the end"},
		{"stride 0", func() []byte { d := bytes.Clone(whole); d[sectionHead+8] = 0; return d }, "entries of 0 bytes"},
	} {
		d := c.data()
		_, err := Open(bytes.NewReader(d), int64(len(d)))
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestLayout holds the reader to the plugin's header.
func TestLayout(t *testing.T) {
	source := `#include <stddef.h>
#include <stdio.h>
#include "arena.h"
#include "cache.h"
#include "wire.h"
int main(void) {
	printf("%zu %zu %d|", offsetof(struct nmo_a_header, section), sizeof(struct nmo_a_header), NMO_ARENA_VERSION);
	printf("1 %zu %zu %zu %zu %zu %zu %zu 8 %zu %zu %zu %zu %zu %zu|", sizeof(struct nmo_a_note), sizeof(struct nmo_a_module),
		sizeof(struct nmo_a_code), sizeof(struct nmo_a_loop), sizeof(struct nmo_a_code), sizeof(struct nmo_a_thread),
		sizeof(struct nmo_a_site), sizeof(struct nmo_a_object), sizeof(struct nmo_a_page), sizeof(struct nmo_a_block), sizeof(struct nmo_small),
		sizeof(struct nmo_a_use), sizeof(struct nmo_a_interval));
	printf("%zu %zu %zu %zu %zu %zu|", offsetof(struct nmo_a_page, module), offsetof(struct nmo_a_page, flags), offsetof(struct nmo_a_block, page),
		offsetof(struct nmo_a_block, region), offsetof(struct nmo_a_object, kind), offsetof(struct nmo_a_header, lost));
	printf("%zu %zu %zu %zu %d %#x %#x|", offsetof(struct nmo_a_use, owner), offsetof(struct nmo_a_use, op), offsetof(struct nmo_a_interval, work),
		offsetof(struct nmo_a_interval, count), NMO_PARTS, NMO_OWNER_PAGE, NMO_OWNER_SITE);
	printf("%s", NMO_ARENA_MAGIC);
	return 0;
}`
	plugin := filepath.Join("..", "..", "runtime-c", "plugin")
	app := filepath.Join(t.TempDir(), "layout")
	cc := exec.Command("cc", "-I", plugin, "-x", "c", "-o", app, "-")
	cc.Stdin = strings.NewReader(source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	out, err := exec.Command(app).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d %d %d|%s|32 36 40 48 28 64|32 44 16 24 2048 0x80000000 0x40000000|numaopt-arena\n", sectionHead, headerBytes, Version,
		strings.Trim(fmt.Sprint(entry[:L1]), "[]"))
	if string(out) != want {
		t.Errorf("arena.h has %q, want %q", out, want)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(small().Bytes())
	f.Add(NewBuilder().Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		a.Command()
		a.Notes()
		a.Modules()
		a.Funcs()
		a.Loops()
		a.Sites()
		a.Objects()
		a.Threads()
		a.EachPage(func(int, Page) {})
		a.EachBlock(func(*Block) {})
		a.EachSmall(func(SmallVote) {})
		a.EachUse(func(*Use) {})
		a.EachInterval(func(*Interval) {})
		a.Accesses()
	})
}

// TestInstance has numbers as the plugin shortens them (arena.h).
func TestInstance(t *testing.T) {
	for _, c := range []struct {
		short uint16
		want  uint64
	}{{0, 0}, {4095, 4095}, {1<<11 + 2048, 4096}, {1<<11 + 4095, 8190}, {2<<11 + 2048, 8192}, {30<<11 + 2048, 1 << 41}} {
		if got := instance(c.short); got != c.want {
			t.Errorf("%#x: %d, want %d", c.short, got, c.want)
		}
	}
}
