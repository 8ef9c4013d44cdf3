package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// run makes a profile of one thread for each node from pictures of their tracks: a cell
// for each part, "." where the thread waits, else the region's letter (m, w, b) and for
// each node the DRAM accesses, "w4/0"; after "+" further accesses.
func run(nodes int, tracks ...string) *profile.Profile {
	p := profiletest.Draw(nodes, 1)
	p.Run.IntervalWidth, p.Run.IntervalClock = 1000, profile.Accesses
	for thread, track := range tracks {
		for at, cell := range strings.Fields(track) {
			for _, one := range strings.Split(strings.Trim(cell, "."), ",") {
				if one != "" {
					p.Intervals = append(p.Intervals, intervals(thread, at, one)...)
				}
			}
		}
	}
	p.Intervals = profile.MergeIntervals(p.Intervals)
	if err := p.Check(); err != nil {
		panic(err)
	}
	return p
}

func intervals(thread, at int, cell string) (list []profile.Interval) {
	v := profile.Interval{Thread: int32(thread), At: int32(at), Region: int32(strings.Index("mwb", cell[:1])), Home: topo.Unknown}
	counts, work, _ := strings.Cut(cell[1:], "+")
	fmt.Sscan(work, &v.Work)
	list = append(list, v)
	for home, text := range strings.Split(counts, "/") {
		v.Home, v.Work = topo.NodeID(home), 0
		fmt.Sscan(text, &v.Count)
		list = append(list, v)
	}
	return list
}

// draw is the mirror of run, by thread.
func draw(t *Timeline) string {
	var b strings.Builder
	for _, track := range t.Tracks {
		fmt.Fprintf(&b, "%d:", track.Thread)
		for _, c := range track.Cells {
			fmt.Fprintf(&b, " %d-%d%c", c.From, c.To, "mwb"[c.Region])
			for i, n := range c.Homes[:t.Nodes] {
				fmt.Fprintf(&b, "%s%d", map[bool]string{true: "", false: "/"}[i == 0], n)
			}
			fmt.Fprintf(&b, "+%d", c.Work)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestOf(t *testing.T) {
	p := run(2,
		"m9/0+90 m5/0+80 w3/1+50 w1/3+50,b0/2+10 . b0/4",
		".       .       w0/2+70 .               . b7/0")
	for _, c := range []struct {
		name string
		most int
		want string
	}{
		{"all", profile.MostIntervals, "0: 0-1m9/0+90 1-2m5/0+80 2-3w3/1+50 3-4w1/5+60 5-6b0/4+0\n1: 2-3w0/2+70 5-6b7/0+0\n"},
		{"as many as there are", 6, "0: 0-1m9/0+90 1-2m5/0+80 2-3w3/1+50 3-4w1/5+60 5-6b0/4+0\n1: 2-3w0/2+70 5-6b7/0+0\n"},
		{"half", 3, "0: 0-1m14/0+170 1-2w4/6+110 2-3b0/4+0\n1: 1-2w0/2+70 2-3b7/0+0\n"},
		{"one", 1, "0: 0-1m18/10+280\n1: 0-1w7/2+70\n"},
	} {
		got, ok := Of(p, c.most)
		if !ok || draw(got) != c.want {
			t.Errorf("%s: %v\n%swant\n%s", c.name, ok, draw(got), c.want)
		}
		if got.Parts*int(got.Width) < 6000 || got.Parts > c.most {
			t.Errorf("%s: %d parts of %d", c.name, got.Parts, got.Width)
		}
	}
	if _, ok := Of(profiletest.Draw(2, 1, "u heap: 0 1"), 9); ok {
		t.Error("a timeline of nothing")
	}
}

func TestMerged(t *testing.T) {
	p := run(2, "m9/0+90 m5/0+80 w3/1+50 w1/3+50 . w1/0")
	all, _ := Of(p, profile.MostIntervals)
	before := draw(all)
	if got := draw(all.Merged()); got != "0: 0-2m14/0+170 2-4w4/4+100 5-6w1/0+0\n" {
		t.Error(got)
	}
	if draw(all) != before {
		t.Error("the timeline itself has changed")
	}
}

func TestMoment(t *testing.T) {
	for _, c := range []struct {
		clock profile.Clock
		width uint64
		part  int
		want  string
	}{
		{profile.Accesses, 1000, 0, "0 accesses"},
		{profile.Accesses, 500_000, 3, "1.5 million accesses"},
		{profile.Accesses, 1 << 31, 1, "2.15 billion accesses"},
		{profile.Nanoseconds, 500_000, 3, "1.5ms"},
	} {
		if got := (&Timeline{Clock: c.clock, Width: c.width}).Moment(c.part); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// document is a trace as the format describes it; other fields are an error.
type document struct {
	DisplayTimeUnit string
	TraceEvents     []struct {
		Name, Ph, Cat string
		Ts, Dur       *float64
		Pid, Tid      int
		Args          map[string]any
	}
	OtherData map[string]any
}

func trace(t *testing.T, p *profile.Profile, opt TraceOptions) (document, int) {
	t.Helper()
	var b bytes.Buffer
	if err := Trace(&b, p, opt); err != nil {
		t.Fatal(err)
	}
	size := b.Len()
	var doc document
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if u := doc.DisplayTimeUnit; u != "ns" && u != "ms" {
		t.Errorf("displayTimeUnit %q", u)
	}
	end := map[int]float64{} // of the last slice of a thread
	for _, e := range doc.TraceEvents {
		switch e.Ph {
		case "M":
			if e.Ts != nil || len(e.Args) != 1 {
				t.Errorf("metadata %+v", e)
			}
		case "X":
			if e.Ts == nil || e.Dur == nil || *e.Dur <= 0 || e.Tid == 0 || e.Tid == e.Pid || e.Name == "" {
				t.Fatalf("slice %+v", e)
			}
			if *e.Ts < end[e.Tid] {
				t.Errorf("slice %+v begins before %f", e, end[e.Tid])
			}
			end[e.Tid] = *e.Ts + *e.Dur
		case "C":
			if n, ok := e.Args["remote"].(float64); e.Ts == nil || !ok || n < 0 || n > 100 {
				t.Errorf("counter %+v", e)
			}
		default:
			t.Errorf("event of phase %q", e.Ph)
		}
	}
	return doc, size
}

func TestTrace(t *testing.T) {
	p := run(2, "m9/0+90 m5/0+80 w3/1+50 w1/3+50", ". . w2/0+70 w1/1 ")
	doc, _ := trace(t, p, DefaultTraceOptions())
	var got []string
	for _, e := range doc.TraceEvents {
		line := fmt.Sprintf("%s %s %d.%d", e.Ph, e.Name, e.Pid, e.Tid)
		if e.Ts != nil {
			line += fmt.Sprintf(" at %g", *e.Ts)
		}
		if e.Dur != nil {
			line += fmt.Sprintf(" for %g", *e.Dur)
		}
		args, _ := json.Marshal(e.Args)
		got = append(got, line+" "+string(args))
	}
	want := `M process_name 1.0 {"name":"node 0"}
M process_labels 1.0 {"labels":"accesses of each thread"}
M process_sort_index 1.0 {"sort_index":0}
M process_name 2.0 {"name":"node 1"}
M process_labels 2.0 {"labels":"accesses of each thread"}
M process_sort_index 2.0 {"sort_index":1}
M thread_name 1.3 {"name":"thread 0, CPU 0"}
M thread_sort_index 1.3 {"sort_index":0}
M thread_name 2.4 {"name":"thread 1, CPU 1"}
M thread_sort_index 2.4 {"sort_index":1}
X main 1.3 at 0 for 2 {"DRAM accesses":14,"accesses":170,"local, node 0":14,"remote %":0}
X work.c:20 (work) 1.3 at 2 for 2 {"DRAM accesses":8,"accesses":100,"local, node 0":4,"remote %":50,"remote, node 1":4}
X work.c:20 (work) 2.4 at 2 for 2 {"DRAM accesses":4,"accesses":70,"local, node 1":1,"remote %":75,"remote, node 0":3}
C remote DRAM accesses (%) 1.0 at 0 {"remote":0}
C remote DRAM accesses (%) 1.0 at 2 {"remote":25}
C remote DRAM accesses (%) 1.0 at 3 {"remote":75}
C remote DRAM accesses (%) 2.0 at 0 {"remote":0}
C remote DRAM accesses (%) 2.0 at 2 {"remote":100}
C remote DRAM accesses (%) 2.0 at 3 {"remote":50}`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
	if clock, _ := doc.OtherData["clock"].(string); !strings.HasPrefix(clock, "accesses") {
		t.Errorf("otherData %v", doc.OtherData)
	}
}

// TestNameless: a slice has the name that its region has elsewhere.
func TestNameless(t *testing.T) {
	p := run(2, "m9/0 w3/1 b4/1")
	for i := range p.Regions {
		p.Regions[i].Name = ""
	}
	p.Regions[0].Kind = profile.Serial
	doc, _ := trace(t, p, DefaultTraceOptions())
	var got []string
	for _, e := range doc.TraceEvents {
		if e.Ph == "X" {
			got = append(got, e.Name)
		}
	}
	if want := "serial, work.c:20 (work), work.c:30 (back)"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTraceOfMany: 512 threads that change loops in every part stay a small file.
func TestTraceOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a million intervals")
	}
	p := profiletest.Draw(8, 64)
	p.Run.IntervalWidth = 1000
	p.Regions[profiletest.Work].Name = strings.Repeat("wörk<b>\"", 125)
	for thread := range p.Threads {
		for at := range profile.MostIntervals {
			p.Intervals = append(p.Intervals, profile.Interval{Thread: int32(thread), At: int32(at), Region: int32((at/3 + at/5 + thread) % 3), Home: topo.NodeID(at % 8), Count: 1 + uint64(at%7)})
		}
	}
	doc, size := trace(t, p, DefaultTraceOptions())
	slices, sum := 0, 0.0
	for _, e := range doc.TraceEvents {
		if e.Ph == "X" {
			slices++
			sum += e.Args["DRAM accesses"].(float64)
		}
	}
	if slices > DefaultTraceOptions().MostSlices || slices < 5_000 || size > 30<<20 {
		t.Errorf("%d slices, %d bytes", slices, size)
	}
	want := 0.0
	for i := range p.Intervals {
		want += float64(p.Intervals[i].Count)
	}
	if sum != want {
		t.Errorf("%g DRAM accesses, want %g", sum, want)
	}
}

func TestTraceOfNothing(t *testing.T) {
	if err := Trace(new(bytes.Buffer), profiletest.Draw(1, 1, "u heap: 0 1"), DefaultTraceOptions()); err == nil || !strings.Contains(err.Error(), "record it again") {
		t.Error(err)
	}
	trace(t, run(1, "w1"), TraceOptions{MostSlices: 1, MostName: 5})
}
