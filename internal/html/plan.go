package html

import (
	"fmt"

	"numaopt/internal/plan"
	"numaopt/internal/report"
	"numaopt/internal/units"
)

// planned is what the plan says it will change, beside what the profile saw.
func (p *page) planned(in *Input) {
	pl := in.Plan
	t := &table{ID: "plan", Caption: "Objects that the plan places", Columns: []heading{
		{"object", "", false}, {"kind", "", false}, {"size", "", true},
		{"place", "its distribution over the nodes", false},
		{"remote % now", "of its accesses with a known home, as profiled", true},
		{"remote % predicted", "the same under the plan", true},
	}}
	p.Plan = t.fill(len(pl.Objects), func(i int) row {
		e := &pl.Objects[i]
		return row{Cells: []cell{
			name(e.Name), {Text: e.Kind}, number(int64(e.Bytes), e.Bytes.String()), {Text: place(&e.Place)},
			percent(report.Pct(e.Predict.RemoteBefore)), percent(report.Pct(e.Predict.RemoteAfter)),
		}}
	}, func(int) report.Pct { return 0 })
	s := &table{ID: "planloops", Caption: "Loops that get another schedule", Columns: []heading{
		{"loop", "", false}, {"schedule", "", false},
		{"remote % now", "of its accesses with a known home, as profiled", true},
		{"remote % predicted", "the same under the plan", true},
	}}
	p.PlanLoops = s.fill(len(pl.Loops), func(i int) row {
		l := &pl.Loops[i]
		return row{Cells: []cell{
			name(l.Name), {Text: l.String()},
			percent(report.Pct(l.Predict.RemoteBefore)), percent(report.Pct(l.Predict.RemoteAfter)),
		}}
	}, func(int) report.Pct { return 0 })
	for _, note := range pl.Notes[:min(len(pl.Notes), 40)] {
		p.PlanNotes = append(p.PlanNotes, middle(note, longest))
	}
}

// predictions is what pl predicts for its objects, by name; of allocations that it places
// in different ways there is no one figure.
func predictions(pl *plan.Plan) map[string]cell {
	out := make(map[string]cell)
	if pl != nil {
		for i := range pl.Objects {
			if e := &pl.Objects[i]; e.Instance == nil {
				out[e.Name] = percent(report.Pct(e.Predict.RemoteAfter))
			}
		}
	}
	return out
}

// place is a distribution in words.
func place(d *plan.Distribution) string {
	switch d.Policy {
	case plan.Bind:
		return fmt.Sprintf("bind to node %d", d.Node)
	case plan.BlockCyclic:
		return fmt.Sprintf("block-cyclic of %v", units.Bytes(d.Block))
	case plan.Pages:
		return fmt.Sprintf("page map of %d runs", len(d.Map))
	case plan.Interleave:
		if len(d.Nodes) > 0 {
			return fmt.Sprintf("interleave over nodes %v", d.Nodes)
		}
	}
	return string(d.Policy)
}
