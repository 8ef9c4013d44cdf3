package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/lab"
	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

// TestLatencyInGuest: doctor --latency really loads from where it says, by the count of
// every access in a guest: the CPUs of each node from the memory of each.
func TestLatencyInGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a guest")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "numaopt")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if os.Getenv(runfile.LibDir) == "" {
		t.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	counts := filepath.Join(dir, "lab.json")
	var out, said bytes.Buffer
	std := &stdio{in: strings.NewReader(""), out: &out, err: &said}
	// Bound by the lab, the program would see but one CPU.
	args := []string{"lab", "--topology", "2x2", "--bind", "none", "--memory", "2G", "-q", "--json", "-o", counts, "--", bin, "doctor", "--latency"}
	if code := run(context.Background(), std, args); code != 0 {
		t.Fatalf("exit status %d\n%s%s", code, out.String(), said.String())
	}
	text, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	var r lab.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	var sum uint64
	for _, row := range r.Runs[0].Matrix {
		for _, n := range row {
			sum += n
		}
	}
	// A quarter each, but the chains are laid by whatever CPU the kernel chose.
	for from, row := range r.Runs[0].Matrix {
		for to, n := range row {
			if share := 100 * n / sum; share < 10 || share > 45 {
				t.Errorf("CPUs of node %d have %d %% of their DRAM accesses in memory of node %d", from, share, to)
			}
		}
	}
}
