package main

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
)

// The machine and the program of the generated files.
const (
	nodes, cpusPerNode = 2, 8
	threads            = nodes * cpusPerNode
	pid                = 1000
	nodeBytes          = 16 << 30
	objects            = 8
	objectBytes        = 64 << 20
	firstObject        = 0x7f0000000000
	randomBytes        = 256 << 20
	perBuffer          = 512 // samples of a CPU between two rounds of perf's
)

// fields of a sample, as perf mem record --phys-data --data-page-size has them: each
// 8 bytes, in this order after the record's head.
const fields = pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.WeightStruct | pt.DataSrc | pt.PhysAddr | pt.DataPageSize

const (
	atID = 8 * (iota + 1)
	atIP
	atTID
	atTime
	atAddr
	atCPU
	atPeriod
	atWeight
	atSource
	atPhys
	atPageSize
	sampleBytes
)

// generate writes a recording of n samples: of kind "program" of threads that each walk
// through their parts of eight objects and look into those of others, or of kind
// "random" of threads that touch random pages. The instructions are of the ELF file
// app, which need not have run.
func generate(kind string, n int, app, path string) error {
	text, err := textOf(app)
	if err != nil {
		return err
	}
	a := perfdata.Attr{Type: 4, Config: 0x1cd, Period: 1000, SampleType: fields, ReadFormat: 4, Flags: pt.SampleIDAll}
	stores := a
	stores.Config = 0x82d0
	w := &pt.Writer{Events: []pt.Event{{Name: "cpu/mem-loads,ldlat=3/P", Attr: a, IDs: []uint64{1}}, {Name: "cpu/mem-stores/P", Attr: stores, IDs: []uint64{2}}}}
	w.Features = map[int][]byte{14: topology(w), 22: memory(w)}
	describe(w, text, app)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	side := w.Records()
	rounds := (n + threads*perBuffer - 1) / (threads * perBuffer)
	err = w.WriteFile(out, int64(len(side)+n*sampleBytes+rounds*8), func(to io.Writer) error {
		if _, err := to.Write(side); err != nil {
			return err
		}
		return samples(to, w, kind, n, text)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// code is where the instructions of a program are.
type code struct{ addr, offset, size uint64 }

func textOf(app string) (code, error) {
	e, err := elf.Open(app)
	if err != nil {
		return code{}, err
	}
	defer e.Close()
	s := e.Section(".text")
	if s == nil || s.Size < 256 {
		return code{}, fmt.Errorf("%s: no code", app)
	}
	return code{s.Addr, s.Offset, s.Size}, nil
}

const loadBias = 0x555555554000 // of a position-independent program

// describe adds what perf says before samples: names and mappings.
func describe(w *pt.Writer, text code, app string) {
	for t := range uint32(threads) {
		w.Comm(pid, pid+t, 1, "app")
	}
	page := text.offset &^ 4095
	w.Mmap(pid, pid, 2, loadBias+text.addr-text.offset+page, (text.offset-page+text.size+4095)&^4095, page, app)
	for o := range uint64(objects) {
		w.Mmap(pid, pid, 3+o, firstObject+o<<30, objectBytes, 0, "//anon")
	}
	w.Mmap(pid, pid, 20, firstObject+objects<<30, randomBytes, 0, "//anon")
}

// topology is the header's section NUMA_TOPOLOGY.
func topology(w *pt.Writer) []byte {
	b := w.U32(nil, nodes)
	for n := range nodes {
		b = w.U32(b, uint32(n))
		b = w.U64(b, nodeBytes/1024, nodeBytes/1024)
		b = w.Text(b, fmt.Sprintf("%d-%d", n*cpusPerNode, (n+1)*cpusPerNode-1))
	}
	return b
}

// memory is the header's section MEM_TOPOLOGY: blocks of 1 GiB, a bit each.
func memory(w *pt.Writer) []byte {
	const block = 1 << 30
	b := w.U64(nil, 1, block, nodes)
	for n := range uint64(nodes) {
		blocks := uint64(nodeBytes / block)
		b = w.U64(b, n, 64, 64, (1<<blocks-1)<<(n*blocks))
	}
	return b
}

// Where loads are served, and how often of sixteen times.
var served = []struct {
	source  perfdata.DataSrc
	latency uint64
	times   int
}{
	{perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelL1)<<5 | perfdata.NumL1<<33, 5, 7},
	{perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelL2)<<5 | perfdata.NumL2<<33, 14, 2},
	{perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelL3)<<5 | perfdata.NumL3<<33, 45, 2},
	{perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelLocalRAM)<<5 | perfdata.NumRAM<<33, 220, 2},
	{perfdata.OpStore | (perfdata.LevelHit|perfdata.LevelL1)<<5, 0, 3},
}

const remoteRAM = perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelRemRAM1)<<5 | perfdata.NumRAM<<33 | 1<<37

// samples writes n samples in rounds, as perf empties its buffers: those of a CPU
// after those of another, each in its own order of time.
func samples(to io.Writer, w *pt.Writer, kind string, n int, text code) error {
	var mix []int
	for i, s := range served {
		for range s.times {
			mix = append(mix, i)
		}
	}
	record := w.Sample(nil, &perfdata.Sample{Mode: 2, PID: pid, Period: 1000, PageSize: 4096}, pt.Variable{})
	if len(record) != sampleBytes {
		return fmt.Errorf("a sample has %d bytes, not %d", len(record), sampleBytes)
	}
	round := w.Head(nil, 68, 0, 8) // FINISHED_ROUND
	le := binary.LittleEndian
	rnd := uint64(88172645463325252)
	step := [threads]uint64{}
	for done, clock := 0, uint64(1000); done < n; clock += perBuffer * 1000 {
		for t := 0; t < threads && done < n; t++ {
			for i := 0; i < perBuffer && done < n; i++ {
				rnd ^= rnd << 13
				rnd ^= rnd >> 7
				rnd ^= rnd << 17
				s := served[mix[rnd>>40&15]]
				addr := address(kind, t, step[t], rnd)
				step[t]++
				home := addr >> 12 & 1
				if kind == "program" {
					home = addr % objectBytes / (objectBytes / nodes)
				}
				if s.latency > 200 && int(home) != t/cpusPerNode {
					s.source, s.latency = remoteRAM, 380
				}
				event := uint64(1)
				if s.source&perfdata.OpStore != 0 {
					event = 2
				}
				le.PutUint64(record[atID:], event)
				le.PutUint64(record[atIP:], loadBias+instruction(text, addr, rnd))
				le.PutUint64(record[atTID:], pid|uint64(pid+t)<<32)
				le.PutUint64(record[atTime:], clock+uint64(i)*1000+uint64(t))
				le.PutUint64(record[atAddr:], addr)
				le.PutUint32(record[atCPU:], uint32(t))
				le.PutUint64(record[atWeight:], s.latency+rnd>>50%32)
				le.PutUint64(record[atSource:], uint64(s.source))
				le.PutUint64(record[atPhys:], home*nodeBytes+addr%nodeBytes)
				if _, err := to.Write(record); err != nil {
					return err
				}
				done++
			}
		}
		if _, err := to.Write(round); err != nil {
			return err
		}
	}
	return nil
}

// instruction is what touches an address: one of eight of the loop that uses its object.
func instruction(text code, addr, rnd uint64) uint64 {
	object := (addr - firstObject) >> 30
	return text.addr + (object*8+rnd>>20%8)*(text.size/(8*(objects+1)))
}

// address is what thread t touches next.
func address(kind string, t int, step, rnd uint64) uint64 {
	if kind == "random" {
		return firstObject + objects<<30 + rnd>>8%randomBytes&^7
	}
	const part = objectBytes / threads
	object, owner := step/4096%objects, uint64(t)
	if rnd>>61 == 0 { // one in eight is of a part of the other node's
		owner = (owner + threads/2) % threads
	}
	return firstObject + object<<30 + owner*part + step*192%part + rnd&0x78
}
