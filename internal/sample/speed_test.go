package sample

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/topo"
)

// BenchmarkRead adds up 5 million samples of eight threads on 65,536 pages from a
// hundred places, with one processor and with two; compare with perf report
// --mem-mode and perf script on the same file (analyses/07-import).
func BenchmarkRead(b *testing.B) {
	file := BigFile(b, 5_000_000)
	machine, err := topo.Parse("4x2")
	if err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{1, 2} {
		b.Run(strconv.Itoa(workers), func(b *testing.B) {
			var n uint64
			for b.Loop() {
				f, err := perfdata.Open(file)
				if err != nil {
					b.Fatal(err)
				}
				_, stats, err := Read(f, Options{Machine: machine, Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				n += stats.Used
				f.Close()
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

// BigFile writes n samples; NUMAOPT_BIGFILE keeps the file under that name, for
// other tools to read.
func BigFile(tb testing.TB, n int) string {
	tb.Helper()
	w := recording()
	w.Events = events(kind | pt.PhysAddr | pt.DataPageSize)
	file := os.Getenv("NUMAOPT_BIGFILE")
	if file == "" {
		file = filepath.Join(tb.TempDir(), "perf.data")
	}
	f, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	sources := []perfdata.DataSrc{localRAM, remoteRAM, hitL1, hitL1, hitL1, storeL1}
	rnd := uint64(1)
	one := func(i int, b []byte) []byte {
		rnd ^= rnd << 13
		rnd ^= rnd >> 7
		rnd ^= rnd << 17
		s := at(100+uint32(rnd%8), uint32(rnd%8), uint64(1000+i*100), heapA+rnd>>8%(1<<28), sources[rnd>>40%6], rnd>>50%500)
		s.IP, s.Phys, s.PageSize = 0x401000+rnd>>20%100*16, rnd>>10%(1<<34), 4096
		return w.Sample(b, &s, pt.Variable{})
	}
	size := int64(len(one(0, nil)))
	err = w.WriteFile(out, size*int64(n), func(to io.Writer) error {
		var b []byte
		for i := range n {
			if _, err := to.Write(one(i, b[:0])); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return file
}
