package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"numaopt/internal/perfdata"
	"numaopt/internal/profile"
	"numaopt/internal/sample"
	"numaopt/internal/symbol"
)

// Sampled makes the profile of a process from its samples in a recording. run says
// what the caller knows of it (machine, version); the rest is filled in here.
func Sampled(f *perfdata.File, t *sample.Table, s *sample.Stats, run profile.Run, symbols *symbol.Table) (*profile.Profile, error) {
	if run.Host = f.Info.Host; len(run.Command) == 0 {
		run.Command = []string{t.Command}
	}
	if run.Source = "pmu"; s.Faults {
		run.Source = "faults"
	}
	run.Elapsed = time.Duration(s.Last - s.First)
	run.Processes, run.OtherAccesses = s.Processes, s.Elsewhere
	run.Complete = !f.Cut
	run.Period = max(1, (t.Accesses()+s.Used/2)/s.Used)
	if f.Info.ClockWall != 0 {
		run.Start = time.Unix(0, int64(f.Info.ClockWall+s.First-f.Info.ClockTime))
	}
	if !t.Logged() { // nobody bound its threads, or what did is not known
		run.Bind = "none"
	}
	imported := run.Recording == nil
	run.Recording = recording(f, t, s, run.Recording)
	p, err := FromCounts(t, run, symbols)
	if err != nil {
		return nil, err
	}
	p.Warnings = append(sampleWarnings(f, t, s, imported), p.Warnings...)
	if s.Faults {
		p.Warnings = append(p.Warnings, evenRemote(p)...)
	}
	return p, nil
}

// recording adds to what the caller knows of a recording (nil is nothing) what is in it.
func recording(f *perfdata.File, t *sample.Table, s *sample.Stats, known *profile.Recording) *profile.Recording {
	var r profile.Recording
	if known != nil {
		r = *known
	}
	for i := range f.Events {
		if e := &f.Events[i]; e.Name != "" && len(r.Events) < 16 {
			r.Events = append(r.Events, e.Name)
		}
	}
	r.Samples, r.Used, r.Lost, r.Throttled = s.Samples, s.Used, s.Lost, s.Throttled
	if s.Faults {
		r.EvenPeriod = t.FaultPeriod() // each is one
	} else {
		r.DRAMPeriod, r.EvenPeriod = t.DRAMPeriods()
	}
	ranks := map[int]bool{}
	if threads, err := t.Threads(); err == nil {
		for _, th := range threads {
			ranks[th.Rank] = true
		}
	}
	if seconds := float64(s.Last-s.First) / 1e9; seconds > 0 {
		r.Rate = float64(s.Used) / seconds / float64(max(1, len(ranks)))
	}
	r.Notes = append(slices.Clone(r.Notes), leftOut(s)...)
	return &r
}

// leftOut says where the samples are that are not used: the counts add up.
func leftOut(s *sample.Stats) []string {
	var parts []string
	for _, x := range []struct {
		n    uint64
		what string
	}{
		{s.Own, "of numaopt's own runtime"}, {s.Elsewhere, "of other processes"}, {s.Kernel, "of the kernel"},
		{s.NoAddress, "without an address"}, {s.Fetches, "of code, not of data"}, {s.NoThread, "without a thread or CPU of the machine"},
	} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if parts == nil {
		return nil
	}
	return []string{"samples left out: " + strings.Join(parts, ", ")}
}

// sampleWarnings says what the reader should know of a recording.
func sampleWarnings(f *perfdata.File, t *sample.Table, s *sample.Stats, imported bool) []string {
	var out []string
	say := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	part := func(n uint64) float64 { return 100 * float64(n) / float64(max(1, s.Samples)) }
	say(f.Cut, "the recording is cut short: perf did not come to its end")
	say(s.Lost > 0, "%d samples were lost (%.1f%%): perf could not keep up; record fewer (a larger -c, or fewer events), or with a larger buffer (-m)", s.Lost, 100*float64(s.Lost)/float64(s.Samples+s.Lost))
	say(s.Throttled > 0, "the kernel stopped sampling %d times for taking too much time: threads that ran then have too few samples; record with a larger -c", s.Throttled)
	say(s.NoAddress > 0, "%d samples (%.1f%%) have no data address and are left out", s.NoAddress, part(s.NoAddress))
	say(s.NoThread > 0, "%d samples (%.1f%%) do not say thread or CPU, or a CPU that the machine does not have, and are left out", s.NoThread, part(s.NoThread))
	say(s.Damaged > 0, "%d samples are damaged and left out", s.Damaged)
	another := ""
	if imported {
		another = "; --pid chooses another"
	}
	say(s.Others != "", "samples of other processes are left out (%d, %.1f%%): %s%s", s.Elsewhere, part(s.Elsewhere), s.Others, another)
	say(s.Running != "", "processes still ran when the recording ended, and what they did afterwards is not in it: %s", s.Running)
	say(s.Disagree > 0, "on %d pages the physical addresses, the kernel and the processor do not agree which node they are on: memory was migrated meanwhile, or the recording is of another machine than its header", s.Disagree)
	say(s.Moved > 0, "%d pages were on several nodes, one after the other: accesses count by where the page was then", s.Moved)
	home := "where it was first touched"
	if t.Logged() {
		home = "where the kernel said last that it is, else where it was first touched"
	}
	say(s.Faults && !s.Physical, "the home of a page is taken to be %s: the recording has no physical addresses, which tell of pages that NUMA balancing moved; %s", home, cure(f, imported, "with --phys-data"))
	say(s.Faults && userOnly(f), "pages that the kernel touched first on the program's behalf (a file read into a buffer) are not seen: %s", cure(f, imported, "an event without :u"))
	say(s.Faults, "page faults are samples of who touches a page first, and with NUMA balancing again and again; they tell no loads from stores, and nothing of caches or latency")
	for kind, n := range f.Unknown {
		say(true, "%d records of type %d, which this version does not know, were left out", n, kind)
	}
	say(s.NoLog != "", "%s", s.NoLog)
	say(!t.Logged() && s.NoLog == "", "recorded without numaopt's runtime: heap objects are known as mappings only, and loops by their functions")
	say(s.LogLost > 0, "the runtime's log ends before the program: %s; objects and loops that came after it are not known as such", cmp.Or(s.LogEnd, "it ran full"))
	say(s.SmallLost > 0, "%d small allocations are on pages that the runtime's log had no room for: memory of those pages has no object", s.SmallLost)
	return out
}

// cure is how to record more: what numaopt profile lacks is the right to; whoever imports
// has to ask perf for it, how says, and has the right if the recording has the kernel.
func cure(f *perfdata.File, imported bool, how string) string {
	const right = "as administrator, or with kernel.perf_event_paranoid=1"
	switch {
	case !imported:
		return "record " + right
	case userOnly(f):
		return "record " + how + ", " + right
	}
	return "record " + how
}

// userOnly is whether all events leave out what the kernel does.
func userOnly(f *perfdata.File) bool {
	return !slices.ContainsFunc(f.Events, func(e perfdata.Event) bool { return !e.Attr.UserOnly() })
}
