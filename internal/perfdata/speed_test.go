package perfdata_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"testing"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
)

// BenchmarkSamples decodes a file of 5 million samples shaped as perf mem's, 72 to
// 80 bytes each, on one processor and on two; samples/s is the figure to look at.
func BenchmarkSamples(b *testing.B) {
	file := bigFile(b, 5_000_000)
	for _, workers := range []int{1, 2} {
		b.Run(map[int]string{1: "one", 2: "two"}[workers], func(b *testing.B) {
			total := 0
			for b.Loop() {
				f, err := perfdata.Open(file)
				if err != nil {
					b.Fatal(err)
				}
				counts := make([]struct {
					n   int
					sum uint64
					_   [48]byte
				}, workers)
				if err := f.Samples(workers, func(w int) func(*perfdata.Sample) error {
					c := &counts[w]
					return func(s *perfdata.Sample) error {
						c.n++
						c.sum += s.Addr + uint64(s.TID) + s.Time + s.Latency + s.Phys + uint64(s.Source) + uint64(s.CPU)
						return nil
					}
				}); err != nil {
					b.Fatal(err)
				}
				for _, c := range counts {
					total += c.n
				}
				f.Close()
			}
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

// bigFile writes n samples of two events.
func bigFile(tb testing.TB, n int) string {
	tb.Helper()
	w := &pt.Writer{Events: layouts[0].events}
	block := samples(50_000, w.Events)
	var bytes []byte
	for i := range block {
		bytes = w.Sample(bytes, &block[i], pt.Variable{})
	}
	file := filepath.Join(tb.TempDir(), "perf.data")
	f, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	out := bufio.NewWriter(f)
	err = w.WriteFile(out, int64(len(bytes)*(n/len(block))), func(to io.Writer) error {
		for range n / len(block) {
			if _, err := to.Write(bytes); err != nil {
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
