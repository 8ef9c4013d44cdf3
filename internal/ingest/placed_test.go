package ingest

import (
	"os"
	"testing"

	"numaopt/internal/profile"
)

// What the program places itself is known as that, and is where the kernel of the
// emulated machine would have it.
func TestPlacedByProgram(t *testing.T) {
	qemu := emulator(t)
	if _, err := os.Stat("/usr/include/numaif.h"); err != nil {
		t.Skip("libnuma-dev is not installed")
	}
	r := emulate(t, qemu, nil, compile(t, "placed", "-w", "-Wl,--no-as-needed", "-lnuma"))
	if r.out != "3 7\n" {
		t.Fatalf("the program printed %q", r.out)
	}
	homes := map[string]string{}
	for i, o := range r.Objects {
		var pages [4]int
		for _, g := range r.Pages {
			if g.Object == i && g.Home >= 0 {
				pages[g.Home]++
			}
		}
		// A block's header is in the page before it, where the mapping above ends.
		at := -1
		for n, count := range pages {
			switch {
			case count == 8 && pages == [4]int{8, 8, 8, 8}:
				at = 9
			case count >= 24 && at < 9: // the last of those that it had
				at = n
			}
		}
		if o.Bytes >= 32*4096 && (o.Kind == profile.Heap || o.Kind == profile.Mapping || o.Kind == profile.Global) {
			placed := "first touch"
			if o.Placed {
				placed = "placed"
			}
			homes[o.Name] = placed + " " + string("0123456789"[at])
		}
	}
	for name, want := range map[string]string{
		"table in placed.c": "placed 1", "plain_table in placed.c": "first touch 0", "placed.c:43 (main)": "placed 2",
	} {
		if homes[name] != want {
			t.Errorf("%s: %s, want %s", name, homes[name], want)
		}
	}
	count := map[string]int{}
	for _, how := range homes {
		count[how]++
	}
	if count["placed 3"] != 1 || count["placed 9"] != 1 || count["placed 2"] != 2 {
		t.Errorf("numa_alloc_onnode, numa_alloc_interleaved, move_pages: %v", homes)
	}
}

// A policy that was set before the program was executed is its own, as under numactl.
func TestPlacedBeforeExec(t *testing.T) {
	r := emulate(t, emulator(t), nil, compile(t, "policy", "-w"))
	if want := "use: 3 of 6\nfork: 3 of 6\n"; r.out != want {
		t.Errorf("printed %q, want %q", r.out, want)
	}
	var pages [4]int
	for _, g := range r.Pages {
		// The first page may hold what the dynamic linker allocated, before the runtime was there.
		if o := r.Objects[g.Object]; o.Bytes >= 32*4096 && o.Kind == profile.Heap && g.Home >= 0 && g.Index > 0 {
			if pages[g.Home]++; !o.Placed {
				t.Errorf("%s is placed by first touch", o.Name)
			}
		}
	}
	if pages[0]+pages[3] > 0 || pages[1] < 15 || pages[2] < 15 {
		t.Errorf("pages of nodes %v, want them on 1 and 2", pages)
	}
}
