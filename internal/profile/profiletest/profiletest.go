// Package profiletest draws profiles for tests as pictures of their pages.
package profiletest

import (
	"fmt"
	"strconv"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Regions of every drawn profile, by index: serial code of the main thread, and
// two loops.
const (
	Main = iota
	Work
	Back
)

// Draw makes a profile on a machine of nodes × cpus with one thread per CPU and
// one object per line:
//
//	"u heap: 0!1 9 0 0 0 | 1 0 0 7 0/0 5 0 0 | ? 0 0 0 1"
//
// is a name, a kind, and pages separated by "|". A page is its home ("?" is not
// known), perhaps "!" and the number of stores with which the main thread first
// touched it serially (in main, init.c:5), and the loads of each thread in the
// loop work.c:20 (work), after "/" those in the loop work.c:30 (back). Counts
// may be left out from the right. Every access is served by DRAM. Without "!"
// the first thread that has a count touched the page first.
//
// Draw panics on a picture it cannot read.
func Draw(nodes, cpus int, lines ...string) *profile.Profile {
	p := &profile.Profile{
		Run: profile.Run{
			Source: "emulate", Command: []string{"./app", "100"}, Host: "host", Version: "test",
			Bind: "compact", Cache: topo.DefaultCaches(), Period: 1, Complete: true, Processes: 1,
		},
		Modules: []ident.Module{{Path: "/tmp/app", BuildID: "abcd"}},
		Places:  []ident.Code{code(0x100, "main", "init.c", 5), code(0x200, "work", "work.c", 21), code(0x300, "back", "work.c", 31)},
		Regions: []profile.Region{
			{Kind: profile.Function, Name: "main", Function: "main", File: "init.c", Line: 1, Code: code(0x100, "main", "init.c", 1)},
			{Kind: profile.Loop, Name: "work.c:20 (work)", Function: "work", File: "work.c", Line: 20, Code: code(0x200, "work._omp_fn.0", "work.c", 20), Entries: 3},
			{Kind: profile.Loop, Name: "work.c:30 (back)", Function: "back", File: "work.c", Line: 30, Code: code(0x300, "back._omp_fn.0", "work.c", 30), Entries: 3},
		},
	}
	for n := range nodes {
		node := topo.Node{OS: n}
		for c := range cpus {
			node.CPUs = append(node.CPUs, n*cpus+c)
			p.Threads = append(p.Threads, profile.Thread{Rank: n*cpus + c, CPU: n*cpus + c, Node: topo.NodeID(n)})
		}
		p.Run.Topology.Nodes = append(p.Run.Topology.Nodes, node)
	}
	for _, line := range lines {
		draw(p, line)
	}
	if err := p.Check(); err != nil {
		panic(err)
	}
	return p
}

func code(offset uint64, symbol, file string, line int) ident.Code {
	function, _, _ := strings.Cut(symbol, ".")
	return ident.Code{Offset: offset, Symbol: symbol, Inlined: []ident.Location{{Function: function, File: file, Line: line, FunctionLine: line}}}
}

func draw(p *profile.Profile, line string) {
	head, picture, ok := strings.Cut(line, ": ")
	words := strings.Fields(head)
	if !ok || len(words) < 2 {
		panic(fmt.Sprintf("profiletest: %q: want \"name kind: pages\"", line))
	}
	pages := strings.Split(picture, "|")
	o := profile.Object{
		Name: strings.Join(words[:len(words)-1], " "), Kind: profile.Kind(words[len(words)-1]),
		Site: -1, Module: -1, Bytes: int64(len(pages)) * 4096,
	}
	switch o.Kind {
	case profile.Heap, profile.Small, profile.Mapping:
		o.Site = len(p.Sites)
		p.Sites = append(p.Sites, profile.Site{Frames: []ident.Code{code(uint64(0x1000+o.Site), "main", "init.c", 3)}})
	case profile.Global:
		o.Symbol, o.Module, o.Offset = o.Name, 0, uint64(0x4000+len(p.Objects)*0x1000)
	}
	p.Objects = append(p.Objects, o)
	for i, text := range pages {
		drawPage(p, i, text)
	}
}

// WithCode gives a drawn profile what it knows of lines and time: the accesses of each
// region are of the instruction at its place, and each region took one part of the run.
// Loads took 100 cycles, remote ones 300.
func WithCode(p *profile.Profile) *profile.Profile {
	p.Codes, p.CodeUses, p.Intervals = p.Places, nil, nil
	p.Run.IntervalWidth, p.Run.IntervalClock = 1000, profile.Accesses
	for _, r := range p.Rows {
		home := p.Pages[r.Page].Home
		u := profile.CodeUse{Code: r.Region, Object: int32(p.Pages[r.Page].Object), Region: r.Region, Op: r.Op}
		cycles := uint64(300)
		switch home {
		case topo.Unknown:
			u.Unknown = r.Count
		case p.Threads[r.Thread].Node:
			u.Local, cycles = r.Count, 100
		default:
			u.Remote = r.Count
		}
		if r.Op == profile.Load {
			u.Loads, u.Latency = r.Count, r.Count*cycles
		}
		p.CodeUses = append(p.CodeUses, u)
		p.Intervals = append(p.Intervals, profile.Interval{Thread: r.Thread, At: r.Region, Region: r.Region, Home: home, Count: r.Count, Work: r.Count})
	}
	p.CodeUses, p.Intervals = profile.MergeCodeUses(p.CodeUses), profile.MergeIntervals(p.Intervals)
	if err := p.Check(); err != nil {
		panic(err)
	}
	return p
}

func drawPage(p *profile.Profile, index int, text string) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return // a page nobody touched
	}
	page := profile.Page{Object: len(p.Objects) - 1, Index: index, Home: topo.Unknown, Thread: -1, Region: -1, Place: -1}
	home, stores, serial := strings.Cut(words[0], "!")
	if home != "?" {
		page.Home = topo.NodeID(number(home))
	}
	at := len(p.Pages)
	if serial {
		page.Thread, page.Region, page.Place, page.Serial = 0, Main, Main, true
		row(p, at, 0, Main, profile.Store, stores)
	}
	region, thread := Work, 0
	for _, w := range strings.Fields(strings.ReplaceAll(strings.Join(words[1:], " "), "/", " / ")) {
		if w == "/" {
			region, thread = Back, 0
			continue
		}
		if number(w) > 0 && page.Thread < 0 {
			page.Thread, page.Region, page.Place = thread, region, region
		}
		row(p, at, thread, region, profile.Load, w)
		thread++
	}
	p.Pages = append(p.Pages, page)
}

func row(p *profile.Profile, page, thread, region int, op profile.Op, count string) {
	if n := number(count); n > 0 {
		p.Rows = append(p.Rows, profile.Row{Page: int32(page), Thread: int32(thread), Region: int32(region), Op: op, Level: profile.DRAM, Count: uint64(n)})
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(fmt.Sprintf("profiletest: %q is not a number", s))
	}
	return n
}
