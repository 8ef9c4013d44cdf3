package runfile

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
)

// mapBytes is the most bytes of runs on one map or touched line; the runtime
// reads lines of up to 4000 bytes.
const mapBytes = 3900

// Write writes r. It fails where r breaks the format's rules (Check) and where
// w does.
func Write(w io.Writer, r Run) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("run file: %w", err)
	}
	b := bufio.NewWriter(w)
	writeHead(b, r)
	for i, m := range r.Modules {
		fmt.Fprintf(b, "module %d %s\n", i, file(m))
	}
	for _, m := range r.Read {
		fmt.Fprintf(b, "read %s\n", file(m))
	}
	for _, name := range r.Plain {
		fmt.Fprintf(b, "plain %s\n", name)
	}
	for _, o := range r.Objects {
		writeObject(b, o)
	}
	for _, l := range r.Loops {
		arg := "-"
		if len(l.Nodes) > 0 {
			arg = strings.ReplaceAll(strings.Trim(fmt.Sprint(l.Nodes), "[]"), " ", ",")
		}
		if l.Schedule == BlockExclusive {
			arg = fmt.Sprintf("%d,%d,%s", l.Sweep, l.Step, arg)
		}
		fmt.Fprintf(b, "loop %d %s %d 0x%x %s %s %s\n", l.ID, l.Runtime, l.Module, l.Offset, l.Schedule, arg, line(l.Name))
	}
	return b.Flush()
}

func file(m Module) string { return cmp.Or(m.BuildID, "-") + " " + line(m.Path) }

// writeHead writes what concerns the whole run.
func writeHead(b *bufio.Writer, r Run) {
	mark := 0
	if r.Mark {
		mark = 1
	}
	fmt.Fprintf(b, "numaopt-run %d\nmode %s\nsys %s\nmark %d\n", Version, r.Mode, r.System, mark)
	if r.PageRanges > 0 {
		fmt.Fprintf(b, "page-ranges %d\n", r.PageRanges)
	}
	if r.PageSize > 0 {
		fmt.Fprintf(b, "page-size %d\n", r.PageSize)
	}
	for _, c := range r.CPUs {
		fmt.Fprintf(b, "cpu %d %d\n", c.ID, c.Node)
	}
	for ordinal, os := range r.Nodes {
		fmt.Fprintf(b, "node %d %d\n", ordinal, os)
	}
	if r.Pinned != "" {
		fmt.Fprintf(b, "pinned %s\n", line(r.Pinned))
	}
	for _, f := range r.Only {
		fmt.Fprintf(b, "only 0x%x %s\n", f.Offset, line(f.Path))
	}
	if r.Affine {
		fmt.Fprintf(b, "affine 1\n")
	}
	if r.Summary != "" {
		fmt.Fprintf(b, "summary %s\n", line(r.Summary))
	}
	if r.Log != "" {
		fmt.Fprintf(b, "log %s\n", line(r.Log))
	}
}

// writeObject writes one object and the lines that belong to it.
func writeObject(b *bufio.Writer, o Object) {
	arg := "-"
	switch o.Policy {
	case PolicyBind:
		arg = fmt.Sprint(o.Node)
	case PolicyInterleave:
		arg = fmt.Sprintf("%x", o.Mask)
	case PolicyBlockCyclic:
		arg = fmt.Sprint(o.Block)
	}
	fmt.Fprintf(b, "object %d %s %d %d %d %d %d %s %s %s\n",
		o.ID, o.Kind, o.Rank, o.First, o.Count, o.MinBytes, o.MaxBytes, o.Policy, arg, line(o.Name))
	for k, spans := range o.Frames {
		for _, s := range spans {
			fmt.Fprintf(b, "frame %d %d %d 0x%x 0x%x\n", o.ID, k, s.Module, s.Lo, s.Hi)
		}
	}
	if s := o.Symbol; s != nil {
		fmt.Fprintf(b, "symbol %d %d 0x%x %d\n", o.ID, s.Module, s.VAddr, s.Bytes)
	}
	writeRuns(b, "map", o.ID, o.Map)
	writeRuns(b, "touched", o.ID, o.Touched)
	writeRuns(b, "otherwise", o.ID, o.Otherwise)
}

// writeRuns writes runs over as many lines as they need.
func writeRuns(b *bufio.Writer, word string, id int, runs []Pages) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			fmt.Fprintf(b, "%s %d%s\n", word, id, text.String())
			text.Reset()
		}
	}
	for _, r := range runs {
		node := "-"
		if r.Node >= 0 {
			node = fmt.Sprint(r.Node)
		}
		fmt.Fprintf(&text, " %s*%d", node, r.Count)
		if text.Len() > mapBytes {
			flush()
		}
	}
	flush()
}
