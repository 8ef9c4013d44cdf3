package main

import (
	"errors"
	"strings"
	"testing"

	"numaopt/internal/topo"
)

func TestLabTopology(t *testing.T) {
	host := func(name string) func() (topo.Topology, error) {
		return func() (topo.Topology, error) {
			if name == "" {
				return topo.Topology{}, errors.New("no /sys")
			}
			return topo.Parse(name)
		}
	}
	uneven := func() (topo.Topology, error) {
		m, err := topo.Parse("2x2")
		m.Nodes[1].CPUs = m.Nodes[1].CPUs[:1]
		return m, err
	}
	for _, c := range []struct {
		flag        string
		host        func() (topo.Topology, error)
		nodes, cpus int
		why         string
	}{
		{"2x3", host("8x2"), 2, 3, ""},
		{"", host("8x2"), 8, 2, "like this machine: the guest has 8x2"},
		{"", host("1x16"), 4, 2, "one NUMA node: the guest has 4x2"},
		{"", host(""), 4, 2, "one NUMA node"},
		{"", host("2x64"), 4, 2, "at most 64"},
		{"", uneven, 4, 2, "equally many CPUs"},
	} {
		m, why, err := labTopology(c.flag, c.host)
		if err != nil || len(m.Nodes) != c.nodes || len(m.Nodes[0].CPUs) != c.cpus || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%q: %d nodes, %q, %v", c.flag, len(m.Nodes), why, err)
		}
	}
	if _, _, err := labTopology("0x2", host("2x2")); err == nil {
		t.Error("0x2 was taken")
	}
}
