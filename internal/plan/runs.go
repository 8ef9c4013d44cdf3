package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPages bounds the pages of one map, 4 PiB of memory, so that sums of counts
// read from a file cannot overflow.
const maxPages = 1 << 40

// lineWidth is how long a line of runs or of a comment grows in a plan file.
const lineWidth = 96

// Len returns the pages that r covers.
func (r Runs) Len() int {
	n := 0
	for _, run := range r {
		n += run.Count
	}
	return n
}

// At returns the node of page i, -1 where r does not say.
func (r Runs) At(i int) int {
	if i < 0 {
		return -1
	}
	for _, run := range r {
		if i < run.Count {
			return run.Node
		}
		i -= run.Count
	}
	return -1
}

// MakeRuns is the shortest run-length form of a map; nodes[i] is the node of
// page i, -1 leaves it alone. An empty map gives nil.
func MakeRuns(nodes []int) Runs {
	var r Runs
	for _, n := range nodes {
		if last := len(r) - 1; last >= 0 && r[last].Node == n {
			r[last].Count++
		} else {
			r = append(r, Run{Node: n, Count: 1})
		}
	}
	return r
}

// String is the form of plan and run files: "0*12 1*13 -*4".
func (r Runs) String() string { return strings.Join(r.fields(), " ") }

func (r Runs) fields() []string {
	f := make([]string, len(r))
	for i, run := range r {
		node := "-"
		if run.Node >= 0 {
			node = strconv.Itoa(run.Node)
		}
		f[i] = node + "*" + strconv.Itoa(run.Count)
	}
	return f
}

// ParseRuns reads what String prints, with any white space between runs; a
// count that is missing is 1.
func ParseRuns(text string) (Runs, error) {
	var r Runs
	total := 0
	for _, f := range strings.Fields(text) {
		run, err := parseRun(f)
		if err != nil {
			return nil, err
		}
		if total += run.Count; total > maxPages {
			return nil, fmt.Errorf("run %q: the map has more than %d pages", f, maxPages)
		}
		r = append(r, run)
	}
	return r, nil
}

func parseRun(field string) (Run, error) {
	node, count, counted := strings.Cut(field, "*")
	run := Run{Node: -1, Count: 1}
	var err error
	if node != "-" {
		if run.Node, err = strconv.Atoi(node); err != nil || run.Node < 0 {
			return Run{}, fmt.Errorf(`run %q: not of the form NODE*PAGES such as "0*12", or "-*4"`, field)
		}
	}
	if counted {
		if run.Count, err = strconv.Atoi(count); err != nil || run.Count < 1 || run.Count > maxPages {
			return Run{}, fmt.Errorf("run %q: the number of pages is not from 1 to %d", field, maxPages)
		}
	}
	return run, nil
}

// MarshalYAML writes r as String does, in lines of bounded length.
func (r Runs) MarshalYAML() (any, error) {
	return strings.Join(wrap(r.fields(), lineWidth), "\n"), nil
}

// UnmarshalYAML reads what ParseRuns reads.
func (r *Runs) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	v, err := ParseRuns(text)
	if err != nil {
		return err
	}
	*r = v
	return nil
}

// wrap joins words to lines of at most width bytes; a longer word is a line.
func wrap(words []string, width int) []string {
	var lines []string
	for _, w := range words {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(w) <= width {
			lines[last] += " " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
}
