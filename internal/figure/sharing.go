package figure

import (
	"numaopt/internal/report"
)

// sharing is the classes of pages, by number and weighed by use.
func sharing(in *Input, _ Options) (*sheet, string) {
	if in.Report.DRAMAccesses == 0 {
		return nil, noAccesses
	}
	s := &in.Report.Sharing
	b := bars{axis: "share (%)", max: 100, ticks: percentTicks, numbers: true, parts: []part{
		{name: "private", fill: grey}, {name: "non-shared", fill: blue}, {name: "uniformly shared", fill: orange},
	}}
	for _, row := range []struct {
		name string
		of   *report.Shares
	}{{"pages", &s.Pages}, {"accesses", &s.Accesses}, {in.counted(), &s.DRAMAccesses}} {
		if in.faults() && row.name == "accesses" {
			continue
		}
		b.names = append(b.names, row.name)
		for i, v := range []report.Pct{row.of.Private, row.of.NonShared, row.of.UniformlyShared} {
			b.parts[i].values = append(b.parts[i].values, float64(v))
		}
	}
	return b.sheet("Sharing of pages"), ""
}
