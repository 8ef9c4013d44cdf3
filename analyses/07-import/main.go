// 07-import measures what reads recordings of perf, see README.md.
//
// usage: main generate program|random N APP FILE
//
//	main read WORKERS FILE
//	main measure COMMAND...
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"numaopt/internal/perfdata"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "07-import:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 5 && args[0] == "generate":
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return generate(args[1], n, args[3], args[4])
	case len(args) == 3 && args[0] == "read":
		workers, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return read(workers, args[2])
	case len(args) > 1 && args[0] == "measure":
		return measure(args[1:])
	}
	return fmt.Errorf("usage: see main.go")
}

// read decodes every sample, and every field that numaopt uses.
func read(workers int, path string) error {
	f, err := perfdata.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	type sum struct {
		n, all uint64
		_      [48]byte
	}
	sums := make([]sum, workers)
	if err := f.Samples(workers, func(w int) func(*perfdata.Sample) error {
		c := &sums[w]
		return func(s *perfdata.Sample) error {
			c.n++
			c.all += s.Addr + s.IP + uint64(s.TID) + uint64(s.PID) + s.Time + s.Latency + s.Phys + uint64(s.Source) + uint64(s.CPU) + s.Period
			return nil
		}
	}); err != nil {
		return err
	}
	var n, all uint64
	for _, c := range sums {
		n, all = n+c.n, all+c.all
	}
	fmt.Println(n, "samples", all)
	return nil
}

// measure runs a command without its output, and prints its seconds of wall time and of
// CPU, and the peak of its anonymous memory in MiB: pages of the file that it has mapped
// are not in it, as they are in the maximum resident size.
func measure(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak := 0
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("%s: %w", command[0], err)
			}
			ps := cmd.ProcessState
			fmt.Printf("%.2f\t%.2f\t%.0f\n", time.Since(start).Seconds(), (ps.UserTime() + ps.SystemTime()).Seconds(), float64(peak)/1024)
			return nil
		case <-tick.C:
			peak = max(peak, anonymous(cmd.Process.Pid))
		}
	}
}

// anonymous is the anonymous memory of a process that is resident, in KiB.
func anonymous(pid int) int {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		n := 0
		if _, err := fmt.Sscanf(in.Text(), "RssAnon: %d kB", &n); err == nil {
			return n
		}
	}
	return 0
}
