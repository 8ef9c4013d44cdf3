package lab

import (
	"bytes"
	"strings"
	"testing"

	"numaopt/internal/programs"
)

// The linkable library under a kernel with four nodes, which is asked where each
// page is: every distribution has every page where its owner function says.
func TestAPIDistributions(t *testing.T) {
	opt := boots(t, "4x2")
	opt.Command = []string{programs.Build(t, "distributions-api", "gcc")}
	r, err := Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	out := opt.Stdout.(*bytes.Buffer).String()
	if !strings.HasPrefix(out, "4 nodes, on node 0\n") || strings.Contains(out, "WRONG") || strings.Count(out, "\nok ") != 12 {
		t.Errorf("the program printed\n%s", out)
	}
	if !r.Runs[1].StdoutSame {
		t.Error("under a policy of its own the thread's pages lie elsewhere")
	}
}

// CGO'12 fig. 13(c): the transformed program computes the same, bit by bit, and its
// accesses are local where no placement could make the plain one's so.
func TestAPITransformation(t *testing.T) {
	run := func(name string) (output string, remote float64) {
		opt := boots(t, "4x2")
		opt.Command = []string{programs.Build(t, name, "gcc"), "4"}
		r, err := Run(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		return opt.Stdout.(*bytes.Buffer).String(), *r.Runs[0].RemoteDRAMPct
	}
	plain, before := run("sweeps")
	phased, after := run("sweeps-api")
	if plain != phased || !strings.HasPrefix(plain, "checksum ") {
		t.Errorf("plain %q, transformed %q", plain, phased)
	}
	if before < 20 || after > 4 {
		t.Errorf("remote DRAM accesses %.1f %% -> %.1f %%, want at least 20 and at most 4", before, after)
	}
}
