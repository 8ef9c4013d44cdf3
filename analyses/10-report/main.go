// 10-report writes a large profile of a made-up program, see README.md.
//
// usage: main ROWS FILE
package main

import (
	"fmt"
	"os"
	"strconv"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// The machine and the program.
const (
	nodes, cpusPerNode = 8, 8
	threads            = nodes * cpusPerNode
	objects            = 200
	loops              = 100
	mostPages          = 1_000_000
	rowsPerPage        = 10
	serial             = 0 // region of the initialisation; loops follow it
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "10-report:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: see main.go")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return profile.WriteFile(args[1], generate(n))
}

// generate makes a profile of n rows: objects of some thousand pages, each used by four
// loops in the ways that programs have, most of them first touched by the main thread.
func generate(n int) *profile.Profile {
	p := &profile.Profile{
		Run: profile.Run{
			Source: "emulate", Command: []string{"./solver", "input.nml"}, Dir: "/home/user", Host: "host", Version: "10-report",
			Bind: "compact", Cache: topo.DefaultCaches(), Period: 1, Complete: true, Processes: 1,
		},
		Modules: []ident.Module{{Path: "/home/user/solver", BuildID: "10"}},
	}
	machine(p)
	program(p)
	pages := min(mostPages, n/rowsPerPage)
	p.Pages = make([]profile.Page, 0, pages)
	p.Rows = make([]profile.Row, 0, n)
	for o := range objects {
		object(p, o, pages/objects*(o%9+1)/5+1, n/objects*(o%9+1)/5)
	}
	return p
}

func machine(p *profile.Profile) {
	for node := range nodes {
		var cpus []int
		for c := range cpusPerNode {
			rank := node*cpusPerNode + c
			cpus = append(cpus, rank)
			p.Threads = append(p.Threads, profile.Thread{Rank: rank, CPU: rank, Node: topo.NodeID(node)})
		}
		p.Run.Topology.Nodes = append(p.Run.Topology.Nodes, topo.Node{OS: node, CPUs: cpus})
	}
}

func program(p *profile.Profile) {
	for o := range objects {
		name := fmt.Sprintf("fields_%02d.f90:%d (allocate_fields)", o/10, 20+o%10)
		p.Sites = append(p.Sites, profile.Site{Frames: []ident.Code{code("allocate_fields", fmt.Sprintf("fields_%02d.f90", o/10), 20+o%10)}})
		p.Places = append(p.Places, code("init", "init.f90", 100+o))
		p.Objects = append(p.Objects, profile.Object{Kind: profile.Heap, Name: name, Site: o, Module: -1})
	}
	p.Regions = append(p.Regions, profile.Region{Kind: profile.Function, Name: "init", Function: "init", File: "init.f90", Line: 90, Code: code("init", "init.f90", 90)})
	for l := range loops {
		file, function := fmt.Sprintf("solve_%d.f90", l/10), fmt.Sprintf("sweep_%02d", l)
		p.Regions = append(p.Regions, profile.Region{
			Kind: profile.Loop, Name: fmt.Sprintf("%s:%d (%s)", file, 40+l, function), Function: function, File: file, Line: 40 + l,
			Code: code(function+"._omp_fn.0", file, 40+l), Entries: 500,
		})
	}
}

func code(symbol, file string, line int) ident.Code {
	return ident.Code{Offset: uint64(line) << 8, Symbol: symbol, Inlined: []ident.Location{{Function: symbol, File: file, Line: line, FunctionLine: line}}}
}

// object adds the pages of object o, and rows of loads and stores, served by LLC and DRAM.
func object(p *profile.Profile, o, pages, rows int) {
	p.Objects[o].Bytes = int64(pages) * 4096
	first := len(p.Pages)
	for i := range pages {
		g := profile.Page{Object: o, Index: i, Region: serial, Place: o, Serial: true}
		if o%5 == 4 { // one in five is touched first by those who use it
			g.Thread, g.Region, g.Serial = i*threads/pages, serial+1+o%loops, false
			g.Home = p.Threads[g.Thread].Node
		}
		p.Pages = append(p.Pages, g)
	}
	rnd := uint64(o)*2654435761 + 88172645463325252
	for r := range rows {
		rnd ^= rnd << 13
		rnd ^= rnd >> 7
		rnd ^= rnd << 17
		page, k := r*pages/rows, r-(r*pages/rows)*rows/pages // the k-th row of this page
		loop := (o + k/4*37) % loops
		op, level := profile.Op(k&1), profile.LLC+profile.Level(k>>1&1)
		p.Rows = append(p.Rows, profile.Row{
			Page: int32(first + page), Thread: int32(user(page, pages, loop, k)), Region: int32(serial + 1 + loop), Op: op, Level: level,
			First: 0, Last: profile.SweepParts - 1, Count: uint64(32*(k+1)) + rnd>>57,
		})
	}
}

// user is the thread that uses a page in a loop: by contiguous parts, cyclically, in
// inverse order, or any.
func user(page, pages, loop, k int) int {
	own := page * threads / pages
	switch loop % 10 {
	case 7:
		return page / 4 % threads
	case 8:
		return threads - 1 - own
	case 9:
		return (page*2654435761>>7 + k*17) % threads
	}
	return own
}
