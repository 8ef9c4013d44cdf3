// Command generate writes a file as perf mem record does on a machine of two nodes
// with eight CPUs each, of a program of 16 threads:
//
//	generate -samples N [-random] -program ELF FILE
//
// Each thread sweeps over its part of eight arrays of 256 MiB, one loop after the
// other, and looks at an array that all share now and then. With -random every sample
// is of a page of 65,536 at random, by any thread: the worst that a table of pages and
// threads can meet. Code is that of the program, whose functions the samples are in.
package main

import (
	"bufio"
	"debug/elf"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
)

const (
	threads  = 16
	arrays   = 8
	array    = 256 << 20
	heap     = 0x7f0000000000
	period   = 1000
	pid      = 1000
	burst    = 32 // samples of a CPU's buffer that perf writes together
	features = 22 // HEADER_MEM_TOPOLOGY
)

func main() {
	samples := flag.Int("samples", 5_000_000, "how many")
	random := flag.Bool("random", false, "pages and threads at random")
	program := flag.String("program", "", "an ELF file")
	flag.Parse()
	if err := run(flag.Arg(0), *program, *samples, *random); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(file, program string, samples int, random bool) error {
	code, err := functions(program)
	if err != nil {
		return err
	}
	attr := perfdata.Attr{Type: 4, Config: 0x1cd, Period: period, ReadFormat: 4, Flags: pt.SampleIDAll,
		SampleType: pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.WeightStruct | pt.DataSrc | pt.PhysAddr}
	stores := attr
	stores.Config = 0x82d0
	w := &pt.Writer{Events: []pt.Event{{Name: "cpu/mem-loads,ldlat=3/P", Attr: attr, IDs: []uint64{1}}, {Name: "cpu/mem-stores/P", Attr: stores, IDs: []uint64{2}}}}
	w.Features = map[int][]byte{features: topology(w)}
	w.Comm(pid, pid, 1, "app")
	w.Mmap(pid, pid, 2, 0x400000, 1<<24, 0, program)
	for i := range uint64(arrays) {
		w.Mmap(pid, pid, 3, heap+2*i*array, array, 0, "//anon")
	}
	g := &generator{random: random, code: code, rnd: rand.New(rand.NewPCG(1, 2))}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	buffered := bufio.NewWriterSize(out, 1<<20)
	one := g.sample(0)
	size := int64(len(w.Sample(nil, &one, pt.Variable{})))
	err = w.WriteFile(buffered, size*int64(samples), func(to io.Writer) error {
		var b []byte
		for i := range samples {
			s := g.sample(i)
			b = w.Sample(b[:0], &s, pt.Variable{})
			if _, err := to.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return out.Close()
}

// topology is MEM_TOPOLOGY of two nodes: blocks of 1 GiB, the first 64 are node 0's.
func topology(w *pt.Writer) []byte {
	b := w.U64(nil, 1, 1<<30, 2)
	b = w.U64(b, 0, 128, 128, ^uint64(0), 0)
	return w.U64(b, 1, 128, 128, 0, ^uint64(0))
}

// functions are addresses in the text of a program.
func functions(program string) ([]uint64, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 64 {
			out = append(out, 0x400000+s.Value+16)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no functions", program)
	}
	return out, nil
}

type generator struct {
	random bool
	code   []uint64
	rnd    *rand.Rand
	at     [threads]uint64 // bytes that the thread has swept
}

// sample is the next one; the files of perf have bursts of each CPU.
func (g *generator) sample(i int) perfdata.Sample {
	t := uint64(i / burst % threads)
	s := perfdata.Sample{Mode: 2, PID: pid, TID: pid + uint32(t), CPU: uint32(t), Time: 1000 + uint64(i)*700, Period: period}
	const share = array / threads
	var offset, loop uint64
	switch {
	case g.random:
		offset, loop = g.rnd.Uint64N(65536*4096)&^7, g.rnd.Uint64N(6)
		s.TID, s.CPU = pid+g.rnd.Uint32N(threads), g.rnd.Uint32N(threads)
	case g.rnd.Uint32N(16) == 0: // the array that all read
		offset, loop = g.rnd.Uint64N(array)&^7, 5
	default:
		g.at[t] += period * 8 / 2
		sweep := g.at[t] / share
		loop = sweep % 6
		offset = (1+sweep%(arrays-1))*2*array + t*share + g.at[t]%share&^7
	}
	s.Addr, s.IP = heap+offset, g.code[int(loop)%len(g.code)]
	home := offset / (array / 2) & 1
	s.Phys = home<<36 + offset&(1<<32-1)
	g.serve(&s, home)
	return s
}

// serve says what served the access, as Skylake does.
func (g *generator) serve(s *perfdata.Sample, home uint64) {
	if g.rnd.Uint32N(3) == 0 {
		s.Event, s.Source = 1, perfdata.DataSrc(perfdata.OpStore|(perfdata.LevelHit|perfdata.LevelL1)<<5)
		return
	}
	switch where := g.rnd.Uint32N(10); {
	case where < 5:
		s.Source, s.Latency = perfdata.DataSrc(perfdata.OpLoad|(perfdata.LevelHit|perfdata.LevelL1)<<5|perfdata.NumL1<<33), 7
	case where < 7:
		s.Source, s.Latency = perfdata.DataSrc(perfdata.OpLoad|(perfdata.LevelHit|perfdata.LevelL3)<<5|perfdata.NumL3<<33), 60+uint64(g.rnd.Uint32N(30))
	case uint64(s.CPU/8) == home:
		s.Source, s.Latency = perfdata.DataSrc(perfdata.OpLoad|(perfdata.LevelHit|perfdata.LevelLocalRAM)<<5|perfdata.NumRAM<<33), 200+uint64(g.rnd.Uint32N(100))
	default:
		s.Source, s.Latency = perfdata.DataSrc(perfdata.OpLoad|(perfdata.LevelHit|perfdata.LevelRemRAM1)<<5|perfdata.NumRAM<<33|1<<37), 350+uint64(g.rnd.Uint32N(150))
	}
}
