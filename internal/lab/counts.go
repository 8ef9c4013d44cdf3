package lab

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// counts is what the plugin counted in one run: runtime-c/plugin/lab.c.
type counts struct {
	opened                 uint64 // how often the window opened
	unclosed               uint64 // processes (with only: regions) that began and never said that they ended
	loads, stores, unknown uint64
	cells                  []cell
	pages                  []Page
}

// Page is the accesses to one virtual page. Pages of several processes that have
// the same address are one.
type Page struct {
	Number  uint64     // address / page size
	Touched [][]uint64 // [i][j]: from CPUs of node i while the page was on node j
}

// parsePage reads a page's line: its number, and counts by node and home.
func parsePage(line string) (Page, error) {
	number, rest, _ := strings.Cut(line, " ")
	p := Page{}
	_, err := fmt.Sscanf(number, "%x", &p.Number)
	var counts []uint64
	for w := range strings.FieldsSeq(rest) {
		n, e := strconv.ParseUint(w, 10, 64)
		err = errors.Join(err, e)
		counts = append(counts, n)
	}
	nodes := int(math.Sqrt(float64(len(counts))))
	if nodes == 0 || nodes*nodes != len(counts) {
		return p, errors.Join(err, fmt.Errorf("a page has %d counts", len(counts)))
	}
	return Page{p.Number, slices.Collect(slices.Chunk(counts, nodes))}, err
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
		case "page":
			var p Page
			p, err = parsePage(rest)
			c.pages = append(c.pages, p)
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
