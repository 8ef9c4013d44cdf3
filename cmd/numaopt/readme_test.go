package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

// TestReadme runs the session of README.md, every "$ command" of its console
// blocks, and holds the output that is printed there against what comes out: the
// same words in the same lines, in order, with numbers that are close. "..."
// stands for lines left out.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates a program and boots a guest")
	}
	text, err := os.ReadFile(filepath.Join(programs.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	for program, name := range map[string]string{"serial-init": "app.c", "ssor": "ssor.c", "sweeps": "sweeps.c"} {
		source, err := os.ReadFile(filepath.Join(programs.Root(), "testdata", "programs", program, program+".c"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), source, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if os.Getenv(runfile.LibDir) == "" {
		env = append(env, runfile.LibDir+"="+filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	steps := session(string(text))
	if len(steps) < 8 {
		t.Fatalf("README.md has %d commands in its console blocks", len(steps))
	}
	for _, s := range steps {
		cmd := exec.Command("sh", "-c", s.command)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("$ %s\n%s%v", s.command, out, err)
		}
		if missing := s.compare(strings.Split(string(out), "\n")); missing != "" {
			t.Errorf("$ %s\nREADME.md has, and the output has not (or not there):\n  %s\noutput:\n%s", s.command, missing, out)
		}
	}
}

// step is a command and what README.md shows of its output.
type step struct {
	command string
	lines   []string
}

// session is the commands of all console blocks, in order.
func session(text string) []step {
	var steps []step
	in := false
	for _, line := range strings.Split(text, "\n") {
		command, ok := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == "```console"
		case in && ok:
			steps = append(steps, step{command: command})
		case in && len(steps) > 0 && line != "..." && strings.TrimSpace(line) != "":
			last := &steps[len(steps)-1]
			last.lines = append(last.lines, line)
		}
	}
	return steps
}

// compare is the first line that out lacks, "" where it has all in order.
func (s step) compare(out []string) string {
	for _, want := range s.lines {
		for len(out) > 0 && !alike(want, out[0]) {
			out = out[1:]
		}
		if len(out) == 0 {
			return want
		}
		out = out[1:]
	}
	return ""
}

var number = regexp.MustCompile(`\d+(,\d{3})*(\.\d+)?`)

// alike compares two lines: words alike, columns aside, numbers of the README's
// machine within 3 (they are mostly per cent) or a tenth; seconds and what is
// nearly nothing ("<0.1", "0.0") are not compared.
func alike(want, got string) bool {
	words := func(line string) []string {
		line = strings.NewReplacer("<0.1", "0.0", "< 0.1", "0.0", ">99.9", "100.0", "> 99.9", "100.0").Replace(line)
		return strings.Fields(number.ReplaceAllString(line, "N"))
	}
	if strings.Join(words(want), " ") != strings.Join(words(got), " ") {
		return false
	}
	seconds := strings.HasSuffix(want, " s")
	a, b := number.FindAllString(want, -1), number.FindAllString(got, -1)
	for i := range a {
		x, errX := strconv.ParseFloat(strings.ReplaceAll(a[i], ",", ""), 64)
		y, errY := strconv.ParseFloat(strings.ReplaceAll(b[i], ",", ""), 64)
		last := i == len(a)-1
		if errX != nil || errY != nil || !(seconds && last) && math.Abs(x-y) > max(3, 0.1*math.Abs(x)) {
			return false
		}
	}
	return true
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		want, got string
		alike     bool
	}{
		{"67.1 % of 5.61 million", "66.8 %  of 5.60 million", true},
		{"67.1 % of 5.61 million", "57.1 % of 5.61 million", false},
		{"63,772,185 accesses in 2.4 s", "63,800,001 accesses in 9.9 s", true},
		{"63,772,185 accesses in 2.4 s", "43,800,001 accesses in 2.4 s", false},
		{"remote < 0.1 %", "remote 0.1 %", true},
		{"checksum 1.5", "chequesum 1.5", false},
	} {
		if got := alike(c.want, c.got); got != c.alike {
			t.Errorf("alike(%q, %q) = %v", c.want, c.got, got)
		}
	}
}
