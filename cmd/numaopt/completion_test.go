package main

import (
	"strings"
	"testing"

	"numaopt/internal/profile/profiletest"
)

// TestComplete asks for the words that may come next, as the scripts of the shells do.
func TestComplete(t *testing.T) {
	p := profiletest.Draw(2, 1, "u in a.f90 heap: 0 9 9", "a.c:5 (f) heap: 0 9 9", "a.c:5 (g) heap: 0 9 9", "stack stack: 0 1")
	path := nprof(t, p)
	for _, c := range []struct{ args, want string }{
		{"report ", "nprof :8"},
		{"plan a.nprof ", "nprof :8"}, // profiles of further runs
		{"report a.nprof ", ":0"},
		{"apply ", "plan.yaml yaml :8"},
		{"doctor ", ":4"},
		{"report --format ", "text json html csv parquet pprof trace :4"},
		{"report --sort ", "cost dram remote accesses size name :4"},
		{"report --color ", "auto always never :4"},
		{"check --format ", "text json junit sarif github markdown :4"},
		{"report P --object ", "u|heap u in a.f90 a.c:5 (f)|heap a.c:5 (g)|heap thread stacks|stack :4"},
		{"report P --loop ", "main|function work.c:20|loop work work.c:30|loop back :4"},
		{"plan P --only wo", "main|function work.c:20|loop work work.c:30|loop back :4"},
		{"check P --only ", "main|function work.c:20|loop work work.c:30|loop back :4"},
		{"plan P --shape ", "u=|heap u in a.f90 a.c:5 (f)=|heap a.c:5 (g)=|heap :6"},
		{"report P --thread ", "0|CPU 0 of node 0 1|CPU 1 of node 1 :4"},
		{"report nothere.nprof --object ", ":4"},
		{"lab --plan ", "plan.yaml yaml :8"},
		{"profile --topology ", "4x2 2x4 2x8 8x8 :4"},
	} {
		args := append([]string{"__complete"}, strings.Split(strings.ReplaceAll(c.args, "P", path), " ")...)
		code, out, _ := numaopt(args...)
		got := strings.TrimSpace(strings.NewReplacer("\n", " ", "\t", "|").Replace(out))
		if code != 0 || got != c.want {
			t.Errorf("%s: exit %d, %s, want %s", c.args, code, got, c.want)
		}
	}
}
