package plan

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"numaopt/internal/units"
)

// brute is Home by definition: what Contract and paper say in words, counted out.
func brute(d Distribution, page, pages, nodes int) int {
	switch d.Policy {
	case Bind:
		return d.Node
	case Interleave:
		over := d.Nodes
		if len(over) == 0 {
			for n := range nodes {
				over = append(over, n)
			}
		}
		k := 0
		for range page {
			if k++; k == len(over) {
				k = 0
			}
		}
		return over[k]
	case BlockCyclic:
		n, left := 0, int64(d.Block)
		for range page {
			if left -= units.PageSize; left == 0 {
				n, left = n+1, int64(d.Block)
			}
		}
		return n % nodes
	case XWise:
		// Node n holds the pages i with n <= i*nodes/pages < n+1.
		for n := range nodes {
			if n*pages <= page*nodes && page*nodes < (n+1)*pages {
				return n
			}
		}
	case Pages:
		var flat []int
		for _, r := range d.Map {
			for range r.Count {
				flat = append(flat, r.Node)
			}
		}
		return flat[page*len(flat)/pages]
	}
	return -1
}

func randomDistribution(r *rand.Rand, nodes int) Distribution {
	switch r.IntN(6) {
	case 0:
		return Distribution{Policy: Bind, Node: r.IntN(nodes)}
	case 1:
		return Distribution{Policy: Interleave}
	case 2:
		var over []int
		for n := range nodes {
			if r.IntN(2) == 0 {
				over = append(over, n)
			}
		}
		return Distribution{Policy: Interleave, Nodes: over}
	case 3:
		return Distribution{Policy: BlockCyclic, Block: units.Bytes(1+r.IntN(9)) * units.PageSize}
	case 4:
		return Distribution{Policy: XWise}
	}
	m := make([]int, 1+r.IntN(40))
	for i := range m {
		m[i] = r.IntN(nodes+1) - 1
	}
	return Distribution{Policy: Pages, Map: MakeRuns(m)}
}

func TestHome(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		nodes, pages := 1+r.IntN(9), 1+r.IntN(70)
		d := randomDistribution(r, nodes)
		if err := d.Check(nodes); err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		homes := d.Homes(pages, nodes)
		for i := range pages {
			got, want := d.Home(i, pages, nodes), brute(d, i, pages, nodes)
			if got != want || homes[i] != want || got >= nodes {
				t.Fatalf("%+v: page %d of %d on %d nodes is at %d (Homes: %d), want %d", d, i, pages, nodes, got, homes[i], want)
			}
		}
	}
}

// TestXWiseIsFair: parts are contiguous, in node order, and differ by a page.
func TestXWiseIsFair(t *testing.T) {
	for nodes := 1; nodes <= 9; nodes++ {
		for pages := 1; pages < 200; pages++ {
			count := make([]int, nodes)
			last := 0
			for i := range pages {
				n := Distribution{Policy: XWise}.Home(i, pages, nodes)
				if n < last {
					t.Fatalf("%d pages on %d nodes: page %d is on %d after %d", pages, nodes, i, n, last)
				}
				last = n
				count[n]++
			}
			for n, c := range count {
				if c < pages/nodes || c > pages/nodes+1 {
					t.Fatalf("%d pages on %d nodes: node %d has %d", pages, nodes, n, c)
				}
			}
		}
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		text  string
		nodes []int
	}{
		{"", nil}, {"0*1", []int{0}}, {"0*2 -*1 3*2", []int{0, 0, -1, 3, 3}},
	} {
		r := MakeRuns(c.nodes)
		if r.String() != c.text || r.Len() != len(c.nodes) {
			t.Errorf("%v is %q of %d pages, want %q", c.nodes, r, r.Len(), c.text)
		}
		back, err := ParseRuns(c.text)
		if err != nil || back.String() != c.text {
			t.Errorf("%q reads as %v, %v", c.text, back, err)
		}
		for i, n := range c.nodes {
			if r.At(i) != n {
				t.Errorf("%q: page %d is %d, want %d", c.text, i, r.At(i), n)
			}
		}
		if r.At(-1) != -1 || r.At(len(c.nodes)) != -1 {
			t.Errorf("%q: pages outside have a node", c.text)
		}
	}
	if r, err := ParseRuns("2 -\n1*3"); err != nil || r.String() != "2*1 -*1 1*3" {
		t.Errorf("got %v, %v", r, err)
	}
}

// TestVectors holds Home against testdata/distribution, which the tests of
// runtime-c read too. UPDATE=1 writes the files.
func TestVectors(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "distribution")
	if os.Getenv("UPDATE") != "" {
		writeVectors(t, dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files in %s, %v", len(files), dir, err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := 0
		for in := bufio.NewScanner(f); in.Scan(); {
			if line := in.Text(); line != "" && line[0] != '#' {
				checkVector(t, name, line)
				lines++
			}
		}
		if lines == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func checkVector(t *testing.T, name, line string) {
	f := strings.Split(line, "|")
	if len(f) != 4 {
		t.Fatalf("%s: %q has %d fields", name, line, len(f))
	}
	var nodes, pages int
	if _, err := fmt.Sscanf(f[0], "%d %d", &nodes, &pages); err != nil {
		t.Fatalf("%s: %q: %v", name, line, err)
	}
	d := parseVector(t, strings.Fields(f[1]), f[2])
	want, err := ParseRuns(f[3])
	if err != nil || want.Len() != pages {
		t.Fatalf("%s: %q: %v", name, line, err)
	}
	if got := MakeRuns(d.Homes(pages, nodes)); got.String() != want.String() {
		t.Errorf("%s: %q:\n got %v", name, line, got)
	}
}

// parseVector reads POLICY ARG as they stand in a run file.
func parseVector(t *testing.T, policy []string, m string) Distribution {
	d := Distribution{Policy: Policy(policy[0])}
	var err error
	switch d.Policy {
	case Bind:
		d.Node, err = strconv.Atoi(policy[1])
	case Interleave:
		var mask uint64
		mask, err = strconv.ParseUint(policy[1], 16, 64)
		for n := range 64 {
			if mask>>n&1 == 1 {
				d.Nodes = append(d.Nodes, n)
			}
		}
	case BlockCyclic:
		var block int64
		block, err = strconv.ParseInt(policy[1], 10, 64)
		d.Block = units.Bytes(block)
	case Pages:
		d.Map, err = ParseRuns(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const vectorHead = `# Test vectors of distributions, read by internal/plan and by the tests of runtime-c.
# One line is a case, four fields separated by "|":
#   NODES PAGES | POLICY ARG | MAP | HOMES
# POLICY ARG are as on an object line of a run file (bind N, interleave MASKHEX,
# block-cyclic BYTES, x-wise -, pages -); MAP is the page map of "pages" as on a
# map line, else empty; HOMES is the expected node of every page of an object of
# PAGES pages, as runs NODE*COUNT, "-" for pages left to first touch.
# For interleave the kernel chooses the first node; HOMES begins with the lowest.
`

func writeVectors(t *testing.T, dir string) {
	r := rand.New(rand.NewPCG(3, 4))
	text := map[Policy]*strings.Builder{}
	add := func(d Distribution, pages, nodes int) {
		b := text[d.Policy]
		if b == nil {
			b = new(strings.Builder)
			b.WriteString(vectorHead)
			text[d.Policy] = b
		}
		arg := map[Policy]string{Bind: strconv.Itoa(d.Node), BlockCyclic: strconv.FormatInt(int64(d.Block), 10), XWise: "-", Pages: "-"}[d.Policy]
		if d.Policy == Interleave {
			mask := uint64(1)<<nodes - 1
			if len(d.Nodes) > 0 {
				mask = 0
				for _, n := range d.Nodes {
					mask |= 1 << n
				}
			}
			arg = strconv.FormatUint(mask, 16)
		}
		homes := make([]int, pages)
		for i := range homes {
			homes[i] = brute(d, i, pages, nodes)
		}
		fmt.Fprintf(b, "%d %d|%s %s|%v|%v\n", nodes, pages, d.Policy, arg, d.Map, MakeRuns(homes))
	}
	for _, nodes := range []int{1, 2, 3, 4, 8} {
		for _, pages := range []int{1, 2, 3, 5, 7, 16, 33, 1000} {
			add(Distribution{Policy: XWise}, pages, nodes)
			add(Distribution{Policy: BlockCyclic, Block: units.Bytes(1+r.IntN(20)) * units.PageSize}, pages, nodes)
		}
	}
	for range 200 {
		nodes := 1 + r.IntN(8)
		if d := randomDistribution(r, nodes); d.Policy != XWise && d.Policy != BlockCyclic {
			add(d, 1+r.IntN(60), nodes)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for p, b := range text {
		if err := os.WriteFile(filepath.Join(dir, string(p)+".txt"), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
