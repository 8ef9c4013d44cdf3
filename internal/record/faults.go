package record

import (
	"bufio"
	"fmt"
	"io/fs"
)

// BetterFaults is how administrators record page faults: with those that the kernel has
// on the program's behalf (a file read into a buffer), and by the events that come when
// the page is there: page-faults comes before, when it has no physical address yet.
var BetterFaults = []string{"-e", "minor-faults,major-faults", "-c", "1", "--phys-data"}

// migrated is how many pages NUMA balancing has moved since the system's start; 0
// where the kernel does not say.
func migrated(root fs.FS) uint64 {
	f, err := root.Open("proc/vmstat")
	if err != nil {
		return 0
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var n uint64
		if _, err := fmt.Sscanf(in.Text(), "numa_pages_migrated %d", &n); err == nil {
			return n
		}
	}
	return 0
}
