package sample

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"numaopt/internal/arena"
	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

func sharing(t *Table) []Line {
	var out []Line
	t.EachLine(func(l Line) { out = append(out, l) })
	return out
}

// TestLines: the lines of which several nodes are parties are told, with the bytes where
// the parties' accesses began; lines of one node, and those that are only read, are not.
// A line's first store does not count.
func TestLines(t *testing.T) {
	w := recording()
	w.Add(pt.Variable{},
		// Falsely shared: each node writes its own word.
		at(101, 2, 9, heapA+8, storeL1, 0),
		at(100, 0, 10, heapA, storeL1, 0),
		at(101, 2, 11, heapA+8, storeL1, 0),
		at(100, 1, 12, heapA, remoteHITM, 500),
		at(101, 3, 13, heapA+8, hitL1, 5),
		// Of one node.
		at(100, 0, 20, heapA+64, storeL1, 0),
		at(100, 0, 21, heapA+64, storeL1, 0),
		at(100, 1, 22, heapA+64, l3|hitm, 90),
		// Only read.
		at(100, 0, 30, heapA+128, remCache, 100),
		at(101, 2, 31, heapA+128, hitL1, 5),
		// The writer on another node is not seen, but its trace is.
		at(100, 0, 600, heapB+192, remoteHITM, 500),
		// Not known before the second store.
		at(101, 2, 699, heapB+256+63, storeL1, 0),
		at(100, 0, 700, heapB+256, hitL1, 5),
		at(101, 2, 701, heapB+256+63, storeL1, 0),
		at(100, 0, 702, heapB+256+4, hitL1, 5),
	)
	table, _ := read(t, w, Options{})
	none := arena.Code{Module: -1}
	const a, b = heapA / profile.LineBytes, heapB / profile.LineBytes
	want := []Line{
		{Object: 1, Number: a, Node: 0, Code: none, Written: 1, Read: 1, Loads: 1, Stores: 1, HITM: 1},
		{Object: 1, Number: a, Node: 1, Code: none, Written: 1 << 8, Read: 1 << 8, Loads: 1, Stores: 1},
		{Object: 2, Number: b + 3, Node: 0, Code: none, Read: 1, Loads: 1, HITM: 1},
		{Object: 2, Number: b + 4, Node: 1, Code: none, Written: 1 << 63, Stores: 1},
		{Object: 2, Number: b + 4, Node: 0, Code: none, Read: 1 << 4, Loads: 1},
	}
	if d := gocmp.Diff(want, sharing(table)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestHotLine: a line that two nodes write stays known, however many others are written.
func TestHotLine(t *testing.T) {
	w := recording()
	for i := range uint64(4 * lineSets * lineWays) {
		w.Add(pt.Variable{}, at(100, 0, 1000+i, 0x100000+i*profile.LineBytes, storeL1, 0))
		if i%100 == 0 {
			w.Add(pt.Variable{}, at(100+uint32(i/100%2), uint32(i/100%2*2), 1000+i, heapA, storeL1, 0))
		}
	}
	table, _ := read(t, w, Options{Workers: 1})
	const stores = (4*lineSets*lineWays+99)/100 - 1 // the first makes it known
	got := sharing(table)
	if len(got) != 2 || got[0].Stores+got[1].Stores != stores || got[0].Number != heapA/profile.LineBytes {
		t.Errorf("%+v, want two parties of %d stores", got, stores)
	}
}

// TestFold: of more code than there is room for, what has fewest samples becomes one;
// the other node's party, and all samples, stay.
func TestFold(t *testing.T) {
	w := recording()
	w.Add(pt.Variable{}, at(101, 2, 1, heapA, storeL1, 0), at(101, 2, 2, heapA, storeL1, 0))
	for pc := range uint64(lineParties + 5) {
		for k := range pc + 1 {
			s := at(100, 0, 10+k, heapA, storeL1, 0)
			s.IP = 0x401000 + pc
			w.Add(pt.Variable{}, s)
		}
	}
	f, err := perfdata.Parse("test", w.File())
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topo.Parse("2x2")
	if err != nil {
		t.Fatal(err)
	}
	table, _, err := Read(f, Options{Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	stores := map[topo.NodeID]uint64{}
	for _, l := range sharing(table) {
		stores[l.Node] += l.Stores
	}
	const n = lineParties + 5
	if stores[0] != n*(n+1)/2 || stores[1] != 1 || len(table.lines[0].parties) > lineParties {
		t.Errorf("stores by node %v, %d parties; want %d and 1", stores, len(table.lines[0].parties), n*(n+1)/2)
	}
}
