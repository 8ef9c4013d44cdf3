package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"numaopt/internal/access"
	"numaopt/internal/profile"
)

// TraceOptions are the bounds of a trace.
type TraceOptions struct {
	// MostSlices is the most slices of all threads; parts are joined until they are no
	// more. A slice takes some 250 bytes of the file, and some pixels to be seen.
	MostSlices int
	// MostName is the characters of a name; the names of some templates would be most
	// of the file.
	MostName int
}

// DefaultTraceOptions are those of the command.
func DefaultTraceOptions() TraceOptions { return TraceOptions{MostSlices: 50_000, MostName: 120} }

// Trace writes the timeline of p in the Trace Event Format of Chrome, in JSON: a
// process for each node, in it a track for each thread of the node with a slice for
// each loop or function that it worked in for some time, and a counter of the share of
// the node's DRAM accesses that are remote. Without intervals it is an error.
//
// Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
func Trace(w io.Writer, p *profile.Profile, opt TraceOptions) error {
	t, ok := bounded(p, opt.MostSlices)
	if !ok {
		return fmt.Errorf("the profile knows nothing of time: it is of an older numaopt, or from a source that does not tell; record it again")
	}
	out := &tracer{w: bufio.NewWriter(w), p: p, t: t, mostName: opt.MostName}
	out.head()
	out.names()
	out.slices()
	out.counters()
	out.tail()
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// bounded halves the number of parts until there are no more slices than most; one
// part has a slice for each thread.
func bounded(p *profile.Profile, most int) (*Timeline, bool) {
	for parts := profile.MostIntervals; ; parts /= 2 {
		t, ok := Of(p, parts)
		if !ok || parts == 1 || t.Merged().slices() <= most {
			return t, ok
		}
	}
}

func (t *Timeline) slices() (n int) {
	for i := range t.Tracks {
		n += len(t.Tracks[i].Cells)
	}
	return n
}

// event is one event of the format. Times are in microseconds; of accesses 1,000 are
// one.
type event struct {
	Name      string         `json:"name"`
	Phase     string         `json:"ph"`
	Category  string         `json:"cat,omitempty"`
	Timestamp *float64       `json:"ts,omitempty"`
	Duration  float64        `json:"dur,omitempty"`
	Process   int            `json:"pid"`
	Thread    int            `json:"tid,omitempty"`
	Args      map[string]any `json:"args,omitempty"`
}

// tracer writes events one by one and remembers the first error.
type tracer struct {
	w    *bufio.Writer
	p    *profile.Profile
	t    *Timeline
	more bool
	err  error

	mostName int
}

func (o *tracer) write(e event) {
	text, err := json.Marshal(e)
	if o.err == nil {
		o.err = err
	}
	if o.more {
		o.text(",\n")
	}
	o.more = true
	o.text(string(text))
}

func (o *tracer) text(s string) {
	if _, err := o.w.WriteString(s); o.err == nil {
		o.err = err
	}
}

func (o *tracer) head() { o.text("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n") }

func (o *tracer) tail() {
	clock := "time since the start"
	if o.t.Clock == profile.Accesses {
		clock = "accesses of each thread: 1 us is 1,000 of them; waiting threads are beside those that they wait for"
	}
	text, err := json.Marshal(map[string]any{"clock": clock, "part": o.t.Width, "command": o.p.Run.Command, "source": o.p.Run.Source})
	if o.err == nil {
		o.err = err
	}
	o.text("\n],\"otherData\":")
	o.text(string(text))
	o.text("}\n")
}

// process is the number of a node's process, thread that of a thread: they differ
// from each other, and from 0, which viewers take for the idle process.
func (o *tracer) process(node int) int  { return 1 + node }
func (o *tracer) thread(thread int) int { return 1 + o.t.Nodes + thread }

func (o *tracer) names() {
	used := make([]bool, o.t.Nodes)
	for _, track := range o.t.Tracks {
		used[o.p.Threads[track.Thread].Node] = true
	}
	meta := func(name string, process, thread int, args map[string]any) {
		o.write(event{Name: name, Phase: "M", Process: process, Thread: thread, Args: args})
	}
	for node, is := range used {
		if is {
			meta("process_name", o.process(node), 0, map[string]any{"name": fmt.Sprintf("node %d", node)})
			meta("process_labels", o.process(node), 0, map[string]any{"labels": o.t.Unit()})
			meta("process_sort_index", o.process(node), 0, map[string]any{"sort_index": node})
		}
	}
	for _, track := range o.t.Tracks {
		th := &o.p.Threads[track.Thread]
		at, id := o.process(int(th.Node)), o.thread(track.Thread)
		meta("thread_name", at, id, map[string]any{"name": fmt.Sprintf("thread %d, CPU %d", th.Rank, th.CPU)})
		meta("thread_sort_index", at, id, map[string]any{"sort_index": track.Thread})
	}
}

func (o *tracer) slices() {
	for _, track := range o.t.Merged().Tracks {
		node := int(o.p.Threads[track.Thread].Node)
		for i := range track.Cells {
			c := &track.Cells[i]
			from := o.time(c.From)
			o.write(event{
				Name: o.name(c.Region), Phase: "X", Category: string(o.p.Regions[c.Region].Kind),
				Timestamp: &from, Duration: o.time(c.To) - from,
				Process: o.process(node), Thread: o.thread(track.Thread), Args: o.args(c, node),
			})
		}
	}
}

func (o *tracer) name(region int) string {
	name := []rune(access.RegionName(o.p, region))
	if len(name) <= o.mostName {
		return string(name)
	}
	return string(name[:o.mostName-1]) + "…"
}

// args are what a viewer shows of a slice.
func (o *tracer) args(c *Cell, node int) map[string]any {
	args := map[string]any{"DRAM accesses": c.DRAM()}
	if c.Work > 0 {
		args["accesses"] = c.Work
	}
	for home, n := range c.Homes {
		switch {
		case n == 0:
		case home == o.t.Nodes:
			args["of unknown home"] = n
		case home == node:
			args[fmt.Sprintf("local, node %d", home)] = n
		default:
			args[fmt.Sprintf("remote, node %d", home)] = n
		}
	}
	if f := flow(c.Homes, node); f.Known() > 0 {
		args["remote %"] = math.Round(f.RemotePct()*10) / 10
	}
	return args
}

// flow splits counts by home as seen from a node.
func flow(homes []uint64, node int) (f access.Flow) {
	for home, n := range homes {
		switch home {
		case len(homes) - 1:
			f.Unknown += n
		case node:
			f.Local += n
		default:
			f.Remote += n
		}
	}
	return f
}

// counters are the remote share of each node in whole per cent, said when it changes.
func (o *tracer) counters() {
	flows := make([]access.Flow, o.t.Nodes*o.t.Parts)
	used := make([]bool, o.t.Nodes)
	for _, track := range o.t.Tracks {
		node := int(o.p.Threads[track.Thread].Node)
		used[node] = true
		for i := range track.Cells {
			flows[node*o.t.Parts+track.Cells[i].From].Merge(flow(track.Cells[i].Homes, node))
		}
	}
	for node, is := range used {
		if is {
			o.counter(node, flows[node*o.t.Parts:][:o.t.Parts])
		}
	}
}

func (o *tracer) counter(node int, flows []access.Flow) {
	before := -1.0
	for part, f := range flows {
		now := 0.0 // a part without DRAM accesses has no remote ones
		if f.Known() > 0 {
			now = math.Round(f.RemotePct())
		}
		if now != before {
			at := o.time(part)
			o.write(event{Name: "remote DRAM accesses (%)", Phase: "C", Timestamp: &at, Process: o.process(node), Args: map[string]any{"remote": now}})
		}
		before = now
	}
}

// time is the beginning of a part in microseconds.
func (o *tracer) time(part int) float64 { return float64(uint64(part)*o.t.Width) / 1000 }
