// Command 01-plan-thresholds prints what each threshold of the planner costs and saves on
// the profiles that it is given; see README.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
)

// variants changes one threshold at a time.
var variants = []struct {
	name string
	set  func(*planner.Options)
}{
	{"default", func(*planner.Options) {}},
	{"every page on its best node", func(o *planner.Options) { o.MinGain, o.PageGain, o.Tolerance, o.RunCost = 0, 0, 0, 0 }},
	{"min-gain 0", func(o *planner.Options) { o.MinGain = 0 }},
	{"min-gain 0.1", func(o *planner.Options) { o.MinGain = 0.1 }},
	{"min-gain 1", func(o *planner.Options) { o.MinGain = 1 }},
	{"page-gain 0", func(o *planner.Options) { o.PageGain = 0 }},
	{"page-gain 0.05", func(o *planner.Options) { o.PageGain = 0.05 }},
	{"page-gain 0.1", func(o *planner.Options) { o.PageGain = 0.1 }},
	{"tolerance 0", func(o *planner.Options) { o.Tolerance = 0 }},
	{"tolerance 1", func(o *planner.Options) { o.Tolerance = 1 }},
	{"run-cost 0", func(o *planner.Options) { o.RunCost = 0 }},
	{"run-cost 256", func(o *planner.Options) { o.RunCost = 256 }},
}

func main() {
	fmt.Printf("%-14s %-28s %8s %8s %8s %8s %8s\n", "program", "thresholds", "before", "after", "best", "entries", "ranges")
	for _, path := range os.Args[1:] {
		p, err := profile.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".nprof")
		for _, v := range variants {
			opt := planner.DefaultOptions()
			v.set(&opt)
			r, err := planner.Build(p, opt)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
				os.Exit(2)
			}
			fmt.Printf("%-14s %-28s %8.2f %8.2f %8.2f %8d %8d\n", name, v.name,
				r.Before.RemotePct(), r.After.RemotePct(), r.Best.RemotePct(), len(r.Plan.Objects), ranges(r.Plan))
		}
	}
}

// ranges is how many ranges of memory p sets a policy for: what its upkeep
// costs the kernel.
func ranges(p *plan.Plan) int {
	n := 0
	for i := range p.Objects {
		e := &p.Objects[i]
		each := 1
		switch e.Place.Policy {
		case plan.XWise:
			each = p.From.Nodes
		case plan.BlockCyclic:
			each = int((e.Bytes + e.Place.Block - 1) / e.Place.Block)
		case plan.Pages:
			each = len(e.Place.Map)
		}
		n += each
	}
	return n
}
