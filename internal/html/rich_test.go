package html

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/report"
	"numaopt/internal/topo"
)

// rich is a profile with everything that a page can show: serial initialisation, loops
// in conflict, latencies, shared cache lines.
func rich() *profile.Profile {
	const nodes, pages = 4, 256
	r := rand.New(rand.NewPCG(1, 2))
	var u, v []string
	for i := range pages {
		mine, back := i*nodes/pages, nodes-1-i*nodes/pages
		row := func(node int) string {
			counts := make([]string, nodes)
			for n := range counts {
				counts[n] = fmt.Sprint(r.IntN(3) / 2)
			}
			counts[node] = fmt.Sprint(300 + r.IntN(60))
			return strings.Join(counts, " ")
		}
		u = append(u, "0!8 "+row(mine))
		v = append(v, fmt.Sprintf("%d %s / %s", mine, row(mine), row(back)))
	}
	p := profiletest.Draw(nodes, 1, "u heap: "+strings.Join(u, " | "), "v global: "+strings.Join(v, " | "), "stack stack: 0 9 | 1 0 9", "lost unknown: ? 0 7")
	p = profiletest.WithCode(p)
	addLatencies(p, r)
	for n := range 2 {
		p.Lines = append(p.Lines, profile.LineUse{Object: 1, Offset: 640, Node: topo.NodeID(n), Region: profiletest.Work, Place: 1, Written: 1 << (8 * n), Read: 1 << (8 * n), Loads: 50, Stores: 70, HITM: 30})
	}
	return p
}

// addLatencies adds latencies: quick hits, local memory, and remote memory with a long tail.
func addLatencies(p *profile.Profile, r *rand.Rand) {
	sums := make(map[profile.Latency]*profile.Latency)
	for range 20_000 {
		l := profile.Latency{Object: int32(r.IntN(2)), Region: int32(1 + r.IntN(2)), From: topo.NodeID(r.IntN(4)), To: topo.Unknown}
		cycles := 4 + r.ExpFloat64()*6
		switch r.IntN(4) {
		case 0:
			l.Served = profile.ServedL1
		case 1:
			l.Served, cycles = profile.ServedL3, 40+r.ExpFloat64()*20
		case 2:
			l.Served, l.To, cycles = profile.ServedLocalDRAM, l.From, 200+r.ExpFloat64()*60
		case 3:
			l.Served, l.To, cycles = profile.ServedRemoteDRAM, (l.From+1)%4, 350+r.ExpFloat64()*200
		}
		l.Bucket = profile.LatencyBucket(uint64(cycles))
		if sums[l] == nil {
			k := l
			sums[l] = &k
		}
		s := sums[l]
		s.Samples, s.Accesses, s.Cycles = s.Samples+1, s.Accesses+1000, s.Cycles+1000*uint64(cycles)
	}
	for _, s := range sums {
		p.Latencies = append(p.Latencies, *s)
	}
}

// richPlan is a plan for rich.
func richPlan() *plan.Plan {
	return &plan.Plan{
		Predict: plan.Predict{RemoteBefore: 62.5, RemoteAfter: 12.5},
		Objects: []plan.Entry{
			{Name: "u", Kind: "heap", Bytes: 1 << 20, Place: plan.Distribution{Policy: plan.XWise}, Predict: plan.Predict{RemoteBefore: 75, RemoteAfter: 0.1}},
			{Name: "v", Kind: "global", Bytes: 1 << 20, Place: plan.Distribution{Policy: plan.Bind, Node: 2}, Predict: plan.Predict{RemoteBefore: 50, RemoteAfter: 50}},
		},
		Loops: []plan.Loop{{Name: "work.c:30 (back)", Schedule: plan.StaticInverse, Predict: plan.Predict{RemoteBefore: 99, RemoteAfter: 1}}},
		Notes: []string{"v: loops divide it in two ways"},
	}
}

// written is the page of p.
func written(t testing.TB, p *profile.Profile, change func(*Input)) []byte {
	t.Helper()
	r, err := report.Build(p, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{Profile: p, Report: r, Next: "numaopt plan app.nprof -o app.plan.yaml"}
	if change != nil {
		change(in)
	}
	var b bytes.Buffer
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func withPlan(in *Input) { in.Plan, in.PlanIs = richPlan(), "app.plan.yaml" }
