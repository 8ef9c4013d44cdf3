package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApplyFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		want applyOptions
		err  string
	}{
		{"p.yaml -- ./app -n 3", applyOptions{plan: "p.yaml", command: []string{"./app", "-n", "3"}}, ""},
		{"p.yaml --bind spread --summary s.json --dry-run -- app", applyOptions{plan: "p.yaml", command: []string{"app"}, bind: "spread", summary: "s.json", dryRun: true}, ""},
		{"--mark --only f --only g p.yaml -- app", applyOptions{plan: "p.yaml", command: []string{"app"}, mark: true, only: []string{"f", "g"}}, ""},
		{"p.yaml app", applyOptions{}, "the program goes after --"},
		{"-- app", applyOptions{}, "0 of 1 arguments"},
		{"p.yaml --", applyOptions{}, "no program"},
	} {
		var got applyOptions
		cmd := newApplyCmd(&stdio{}, func(_ context.Context, opt applyOptions) error { got = opt; return nil })
		cmd.SetArgs(strings.Fields(c.args))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.args, err, c.err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(applyOptions{})); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", c.args, err, d)
		}
	}
}

const onePlan = `numaopt-plan: 1
from:
  command: [sh]
  topology: 4x2
  nodes: 4
  profile: ""
predicted:
  remote_dram_pct_before: 0
  remote_dram_pct_after: 0
threads:
  bind: compact
objects:
- name: missing in gone.c
  kind: global
  bytes: 1MiB
  symbol: missing
  module: {name: gone}
  place:
    policy: x-wise
  predicted:
    remote_dram_pct_before: 0
    remote_dram_pct_after: 0
...
`

func TestApplyDryRun(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(path, []byte(onePlan), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, warnings bytes.Buffer
	std := &stdio{out: &out, err: &warnings}
	if err := runApply(context.Background(), std, applyOptions{plan: path, command: []string{"sh"}, dryRun: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "numaopt-run 1\nmode apply\nsys linux\n") {
		t.Errorf("not a run file:\n%s", &out)
	}
	// One node is said, with what is skipped and where to try it; several leave the object to be named.
	one := []string{"one NUMA node: the plan's objects (1) and loops (0) are skipped", "numaopt lab --topology 4x2 --plan " + path + " -- sh\n"}
	if w := warnings.String(); !(strings.Contains(w, one[0]) && strings.Contains(w, one[1])) && !strings.Contains(w, "missing in gone.c is not placed") {
		t.Errorf("warnings: %s", w)
	}
}

func TestApplyRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(path, []byte(onePlan), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		opt  applyOptions
		want string
	}{
		{applyOptions{plan: path, command: []string{"sh"}, bind: "tight"}, "want compact, spread or none"},
		{applyOptions{plan: "nothere.yaml", command: []string{"sh"}}, "no such file"},
		{applyOptions{plan: path, command: []string{path}}, "chmod +x"},
		{applyOptions{plan: path, command: []string{"sh"}, summary: filepath.Join(dir, "no", "s.json")}, "must exist"},
	} {
		err := runApply(context.Background(), &stdio{out: &bytes.Buffer{}, err: &bytes.Buffer{}}, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != exitUsage {
			t.Errorf("%+v: %v (exit %d), want %q", c.opt, err, exitCode(err), c.want)
		}
	}
}
