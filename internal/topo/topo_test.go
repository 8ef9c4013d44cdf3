package topo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const recorded = "../../testdata/topo"

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"4x2", "4x2"},
		{" 2X8 ", "2x8"},
		{"1x1", "1x1"},
		{"64x16", "64x16"},
		{"", "want NODESxCPUS"},
		{"4", "want NODESxCPUS"},
		{"4x", "want NODESxCPUS"},
		{"x2", "want NODESxCPUS"},
		{"4x2x1", "want NODESxCPUS"},
		{"-4x2", "want NODESxCPUS"},
		{"4x999999999999999999999", "want NODESxCPUS"},
		{"0x2", "start at 1"},
		{"4x0", "start at 1"},
		{"65x1", "at most 64 nodes"},
		{"64x17", "1088 CPUs in all"},
	} {
		got, err := Parse(c.in)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("Parse(%q): %v; want %s", c.in, err, c.want)
			}
			continue
		}
		if got.String() != c.want {
			t.Errorf("Parse(%q) = %v; want %s", c.in, got, c.want)
		}
		if err := got.Check(); err != nil {
			t.Errorf("Parse(%q): %v", c.in, err)
		}
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0-3,8,10-11\n", "[0 1 2 3 8 10 11]"},
		{"5", "[5]"},
		{"\n", "[]"},
		{"3-1", "not a number or a range"},
		{"1,,2", "not a number or a range"},
		{"2,1", "does not ascend"},
		{"0-4294967295", "not a number or a range"},
	} {
		list, err := ParseList(c.in)
		got := fmt.Sprint(list)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("ParseList(%q) = %s; want %s", c.in, got, c.want)
		}
		if err == nil && FormatList(list) != strings.TrimSpace(c.in) {
			t.Errorf("FormatList(%v) = %q", list, FormatList(list))
		}
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ tree, name, os, memory string }{
		{"4n2c", "4x2", "0 1 2 3", "1 1 1 1"},
		{"2n8c-sparse", "2x8", "0 8", "64 64"},
		{"2n4c-offline-cpu0", "cpus 1-3 | 4-7", "0 1", "? ?"},
		{"1n2c", "1x2", "0", "8"},
		{"1n8c-no-numa", "1x8", "0", "16"},
		{"3n4c-memoryless", "cpus 0-3 | 4-7 (no memory) | none", "0 1 2", "? none ?"},
		{"4n2c-cpuset", "2x2", "1 2", "1 1"},
	} {
		got, err := Read(os.DirFS(filepath.Join(recorded, c.tree)))
		if err != nil {
			t.Errorf("%s: %v", c.tree, err)
			continue
		}
		var numbers, memory []string
		for _, n := range got.Nodes {
			numbers = append(numbers, fmt.Sprint(n.OS))
			switch {
			case n.NoMemory:
				memory = append(memory, "none")
			case n.MemBytes == 0:
				memory = append(memory, "?")
			default:
				memory = append(memory, fmt.Sprint(n.MemBytes>>30))
			}
		}
		want := []string{c.name, c.os, c.memory}
		if diff := cmp.Diff(want, []string{got.String(), strings.Join(numbers, " "), strings.Join(memory, " ")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.tree, diff)
		}
	}
}

func TestReadDistances(t *testing.T) {
	got, err := Read(os.DirFS(recorded + "/4n2c-cpuset"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{10, 20}, {20, 10}}, [][]int{got.Nodes[0].Distances, got.Nodes[1].Distances}); diff != "" {
		t.Errorf("distances of a cpuset (-want +got):\n%s", diff)
	}
	sparse, err := Read(os.DirFS(recorded + "/2n8c-sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if d, n := sparse.Distance(0, 1), sparse.ByOS(8); d != 40 || n != 1 {
		t.Errorf("distance %d, node 8 is %d; want 40, 1", d, n)
	}
}

func TestReadBroken(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for _, c := range []struct {
		name string
		fs   fstest.MapFS
		want string
	}{
		{"no /sys", fstest.MapFS{}, "is /sys mounted"},
		{"garbage", fstest.MapFS{cpuDir + "/online": file("zero\n")}, `"zero" is not a number`},
		{"no CPUs", fstest.MapFS{cpuDir + "/online": file("\n")}, "0 CPUs"},
		{"node without files", fstest.MapFS{cpuDir + "/online": file("0\n"), nodeDir + "/online": file("0\n")}, "cpulist"},
		{"distance", fstest.MapFS{cpuDir + "/online": file("0\n"), nodeDir + "/online": file("0\n"),
			nodeDir + "/node0/cpulist": file("0\n"), nodeDir + "/node0/distance": file("10 20\n")}, "2 distances for 1 nodes"},
		{"empty cpuset", fstest.MapFS{cpuDir + "/online": file("0-1\n"), "proc/self/status": file("Cpus_allowed_list:\t7\n")}, "cpuset"},
	} {
		_, err := Read(c.fs)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
		}
	}
}

func TestOrder(t *testing.T) {
	regular, err := Parse("4x2")
	if err != nil {
		t.Fatal(err)
	}
	odd := Topology{Nodes: []Node{{CPUs: []int{0, 4}}, {CPUs: []int{1, 5, 6}}, {}}}
	for _, c := range []struct {
		t    Topology
		bind Bind
		want string // cpu/node
	}{
		{regular, BindCompact, "0/0 1/0 2/1 3/1 4/2 5/2 6/3 7/3"},
		{regular, "", "0/0 1/0 2/1 3/1 4/2 5/2 6/3 7/3"},
		{regular, BindSpread, "0/0 2/1 4/2 6/3 1/0 3/1 5/2 7/3"},
		{odd, BindCompact, "0/0 4/0 1/1 5/1 6/1"},
		{odd, BindSpread, "0/0 1/1 4/0 5/1 6/1"},
		{odd, "scatter", "want compact or spread"},
	} {
		cpus, err := c.t.Order(c.bind)
		var got []string
		for _, cpu := range cpus {
			got = append(got, fmt.Sprintf("%d/%d", cpu.ID, cpu.Node))
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%v %s: %s; want %s", c.t, c.bind, text, c.want)
		}
	}
}

// TestFakeSysfs reads back what programs in the emulator are shown.
func TestFakeSysfs(t *testing.T) {
	for _, tree := range []string{"4n2c", "2n8c-sparse", "3n4c-memoryless"} {
		want, err := Read(os.DirFS(filepath.Join(recorded, tree)))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := FakeSysfs(dir, want); err != nil {
			t.Fatalf("%s: %v", tree, err)
		}
		got, err := Read(os.DirFS(dir))
		if err != nil {
			t.Fatalf("%s: %v", tree, err)
		}
		for i := range want.Nodes {
			if n := &want.Nodes[i]; n.MemBytes == 0 && !n.NoMemory {
				n.MemBytes = 1 << 30
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tree, diff)
		}
	}
}

func TestMask(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		last int
		want string
	}{
		{[]int{0, 1}, 7, "00000003"},
		{[]int{33}, 35, "00000002,00000000"},
		{nil, 0, "00000000"},
	} {
		if got := formatMask(c.cpus, c.last); got != c.want {
			t.Errorf("formatMask(%v, %d) = %s; want %s", c.cpus, c.last, got, c.want)
		}
	}
}

func TestOneNodeIsASentinel(t *testing.T) {
	if err := fmt.Errorf("profile: %w", ErrOneNode); !errors.Is(err, ErrOneNode) {
		t.Error("ErrOneNode is lost in wrapping")
	}
}
