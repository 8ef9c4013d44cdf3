package lab

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// counts is what the plugin counted in one run: runtime-c/plugin/lab.c.
type counts struct {
	opened                 uint64 // how often the window opened
	unclosed               uint64 // processes (with only: regions) that began and never said that they ended
	loads, stores, unknown uint64
	cells                  []cell
}

// cell is the accesses of one CPU to one node's memory, by serving level.
type cell struct {
	cpu, home         int
	l1, l2, llc, dram uint64
}

func readCounts(path string) (*counts, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	if !in.Scan() || in.Text() != "numaopt-lab-counts 1" {
		return nil, fmt.Errorf("%s: not a file of lab.so's of this version", path)
	}
	c := &counts{}
	for in.Scan() {
		key, rest, _ := strings.Cut(in.Text(), " ")
		switch key {
		case "opened":
			_, err = fmt.Sscan(rest, &c.opened)
		case "unclosed":
			_, err = fmt.Sscan(rest, &c.unclosed)
		case "accesses":
			_, err = fmt.Sscan(rest, &c.loads, &c.stores, &c.unknown)
		case "cell":
			var e cell
			_, err = fmt.Sscan(rest, &e.cpu, &e.home, &e.l1, &e.l2, &e.llc, &e.dram)
			c.cells = append(c.cells, e)
		case "error":
			err = fmt.Errorf("lab.so: %s", rest)
		case "end":
			return c, nil
		default:
			err = fmt.Errorf("%s: unknown line %q", path, in.Text())
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: it ends early; is the disk full?", path)
}
