package report

import (
	"fmt"
	"strings"

	"numaopt/internal/profile"
)

// enoughMatch is the match rate, in per cent, below which the objects table is
// not to be trusted.
const enoughMatch = 99

// fewPerPage is the DRAM samples a page below which the node with most of them is
// often so by chance: serial-init at 1.2 samples a page put its best placement at
// 5.6 % remote, the full trace at 7.9 %.
const fewPerPage = 10

// warnings are what the reader must know before believing a figure: the
// recorder's own, then what the figures themselves give away.
func (b *builder) warnings(r *Report) []string {
	list := append([]string{}, b.p.Warnings...)
	add := func(when bool, format string, args ...any) {
		if when {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	run := &r.Run
	add(!run.Complete, "the recording is not complete%s: the figures are of the run up to there", ended(run.ExitStatus))
	add(run.Complete && run.ExitStatus != 0, "the program ended with status %d", run.ExitStatus)
	add(r.Match < enoughMatch, "only %v of the %s outside stacks and program image belong to a known object; programs built with -g and allocating with malloc, new or mmap match best", r.Match, r.counted())
	add(r.DRAM.UnknownPct >= 1, "%v of the %s are to pages whose home is not known (only read and never written); the remote percentages leave them out", r.DRAM.UnknownPct, r.counted())
	const luck = "which thread uses which page is chance there, and in the next run another, so that the best placement is of this run alone"
	if loops, share := dynamicLoops(r, profile.Loop); share >= worthEven {
		list = append(list, fmt.Sprintf("%v of the %s are of %s, which %s out work while running (dynamic schedule, tasks or nested teams): %s", share, r.counted(), names(loops), verb(len(loops), "hands", "hand"), luck))
	}
	if loops, share := dynamicLoops(r, profile.Function); share >= worthEven {
		list = append(list, fmt.Sprintf("%v of the %s are of %s, whose work looks handed out at run time, as by a thread pool: if it is, %s; to know, profile a second time and give both profiles to numaopt plan", share, r.counted(), names(loops), luck))
	}
	if used, has := b.nodesUsed(); r.Accesses > 0 && used < has {
		list = append(list, fmt.Sprintf("threads ran on %d of %d nodes", used, has))
	}
	if perPage := r.Quality.DRAMSamples / uint64(max(1, r.Sharing.TouchedPages)); !r.Quality.Exact && perPage < fewPerPage {
		list = append(list, fmt.Sprintf("%d DRAM samples a page on average: sharing is undercounted and the best placement looks better than it is; a period of %d would give %d",
			perPage, max(1, r.DRAMAccesses/uint64(max(1, r.Sharing.TouchedPages))/fewPerPage), fewPerPage))
	}
	if silent := b.silentThreads(); silent != "" {
		list = append(list, "no sample from thread "+silent)
	}
	return list
}

// dynamicLoops names the loops, or else the functions, whose work is handed out at
// run time, and the share of that work in the DRAM accesses.
func dynamicLoops(r *Report, kind profile.RegionKind) (loops []string, share Pct) {
	for i := range r.Loops {
		l := &r.Loops[i]
		if (l.Kind == string(profile.Loop)) != (kind == profile.Loop) || !(l.dealt > 0) {
			continue
		}
		share += l.dealt
		if l.dealt >= worthSaying || len(loops) == 0 {
			loops = append(loops, l.Name)
		}
	}
	return loops, share
}

func ended(status int) string {
	if status > 128 {
		return fmt.Sprintf(" (the program was ended by signal %d)", status-128)
	}
	return ""
}

// nodesUsed counts the nodes whose threads have accesses, and the nodes with CPUs.
func (b *builder) nodesUsed() (used, has int) {
	seen := make(map[int]bool)
	for i, t := range b.byThread {
		if t.All.Total() > 0 {
			seen[int(b.p.Threads[i].Node)] = true
		}
	}
	for _, n := range b.p.Run.Topology.Nodes {
		if len(n.CPUs) > 0 {
			has++
		}
	}
	return len(seen), has
}

// silentThreads lists the ranks without any sample, where accesses were sampled.
func (b *builder) silentThreads() string {
	if b.p.Run.Period <= 1 {
		return ""
	}
	counted := make(map[int]bool)
	var silent []string
	for i, t := range b.byThread {
		if t.All.Total() > 0 {
			counted[b.p.Threads[i].Rank] = true
		}
	}
	for _, t := range b.p.Threads {
		if !counted[t.Rank] {
			counted[t.Rank] = true
			silent = append(silent, fmt.Sprint(t.Rank))
		}
	}
	return strings.Join(silent, ", ")
}
