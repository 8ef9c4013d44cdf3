package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/programs"
)

// gateStub stands for numaopt: it runs the program of profile, writes the files that it
// is asked for and, to calls, its arguments.
const gateStub = `#!/bin/bash
echo "$*" >>calls
case $1 in
profile)
	while [ "$1" != -- ]; do [ "$1" != -o ] || echo profile >"$2"; shift; done
	shift
	"$@" ;;
report)
	[ ! -e report-fails ] || { echo "report: it fails" >&2; exit 2; } ;;
check)
	while [ $# -gt 0 ]; do [ "$1" != --write-baseline ] || echo new >"$2"; shift; done
	echo verdict ;;
esac
`

// gate runs scripts/ci/gate with a stub for numaopt in a new folder, which is returned,
// that has files, those that begin with #! as programs.
func gate(t *testing.T, files map[string]string, env ...string) (dir, out string, status int) {
	t.Helper()
	dir = t.TempDir()
	files["bin/numaopt"] = gateStub
	for name, text := range files {
		path, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(programs.Root(), "scripts", "ci", "gate"))
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "GATE_RUNS=1", "GATE_PROGRAM=true", "GATE_MAX_REMOTE=10"}, env...)
	text, _ := cmd.CombinedOutput()
	return dir, string(text), cmd.ProcessState.ExitCode()
}

func gateRead(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return string(text)
}

// A baseline in the output folder would be deleted and compared with itself.
func TestGateBaselineInOutput(t *testing.T) {
	for _, env := range []string{"GATE_BASELINE=numaopt-check/baseline.json", "GATE_BASELINE=./x/../numaopt-check//baseline.json"} {
		dir, out, status := gate(t, map[string]string{"numaopt-check/baseline.json": "old"}, env)
		if status != 2 || !strings.Contains(out, "gate: ") || gateRead(dir, "calls") != "" || gateRead(dir, "numaopt-check/baseline.json") != "old" {
			t.Errorf("%s: status %d\n%s", env, status, out)
		}
	}
	if _, out, status := gate(t, map[string]string{"numaopt-checked/b.json": "old"}, "GATE_BASELINE=numaopt-checked/b.json"); status != 0 {
		t.Errorf("beside it: status %d\n%s", status, out)
	}
}

// The output folder may have other files.
func TestGateDeletesItsOwn(t *testing.T) {
	dir, out, status := gate(t, map[string]string{"keep": "x", "run1.nprof.old": "x", "running.log": "x", "run2.nprof": "x", "check.xml": "x"}, "GATE_OUT=.")
	if status != 0 {
		t.Errorf("status %d\n%s", status, out)
	}
	for _, name := range []string{"keep", "run1.nprof.old", "running.log", "run1.nprof"} {
		if gateRead(dir, name) == "" {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{"run2.nprof", "check.xml"} {
		if gateRead(dir, name) != "" {
			t.Errorf("%s is still there", name)
		}
	}
}

// Arguments are told apart as xargs does; what it refuses is not run.
func TestGateArgs(t *testing.T) {
	files := func() map[string]string {
		return map[string]string{"p": "#!/bin/bash\nfor a; do echo -n \"[$a]\"; done >got\n"}
	}
	for args, want := range map[string]string{
		`512 '4 5' "6 '7"`: "[512][4 5][6 '7]",
		`a '' b ''`:        "[a][][b][]",
		"a\n b":            "[a][b]",
		" ":                "",
		"":                 "",
	} {
		dir, out, status := gate(t, files(), "GATE_PROGRAM=./p", "GATE_ARGS="+args)
		if got := gateRead(dir, "got"); got != want || status != 0 {
			t.Errorf("%q: %s, want %s: status %d\n%s", args, got, want, status, out)
		}
	}
	dir, out, status := gate(t, files(), "GATE_PROGRAM=./p", "GATE_ARGS=512 4' 7")
	if status != 2 || !strings.Contains(out, "GATE_ARGS") || gateRead(dir, "calls") != "" {
		t.Errorf("an open quote: status %d\n%s", status, out)
	}
}

// What cannot be checked is said before the program runs.
func TestGateRefuses(t *testing.T) {
	for env, want := range map[string]string{
		"GATE_RUNS=0":             "GATE_RUNS",
		"GATE_RUNS=-1":            "GATE_RUNS",
		"GATE_RUNS=two":           "GATE_RUNS",
		"GATE_RUNS=1 2":           "GATE_RUNS",
		"GATE_MAX_REMOTE=":        "nothing to check",
		"GATE_MAX_REMOTE=\n \n\n": "nothing to check",
	} {
		if dir, out, status := gate(t, map[string]string{}, env); status != 2 || !strings.Contains(out, want) || gateRead(dir, "calls") != "" {
			t.Errorf("%s: status %d, want 2 and %q\n%s", env, status, want, out)
		}
	}
}

func TestGateLimits(t *testing.T) {
	dir, out, status := gate(t, map[string]string{}, "GATE_MAX_REMOTE=10\n  u = 5\na =b c= 7 \n", "GATE_RUNS=02")
	want := "--max-remote 10 --max-remote u=5 --max-remote a =b c=7 --write"
	if calls := gateRead(dir, "calls"); status != 0 || !strings.Contains(calls, want) || strings.Count(calls, "profile ") != 2 {
		t.Errorf("status %d, want %s\n%s%s", status, want, calls, out)
	}
}

// The verdict does not need the report.
func TestGateReportFails(t *testing.T) {
	_, out, status := gate(t, map[string]string{"report-fails": "x"})
	if status != 0 || !strings.Contains(out, "report: it fails\ngate: ") || !strings.Contains(out, "verdict") {
		t.Errorf("status %d\n%s", status, out)
	}
}

// GitHub obeys commands in what is printed: not the program's.
func TestGateStopsCommands(t *testing.T) {
	files := map[string]string{"p": "#!/bin/sh\necho ::error::mine\nprintf ::end\nexit 3\n"}
	_, out, status := gate(t, files, "GATE_PROGRAM=./p", "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=summary")
	first, rest, _ := strings.Cut(out, "\n")
	token, ok := strings.CutPrefix(first, "::stop-commands::")
	if status != 2 || !ok || len(token) < 16 || !strings.HasPrefix(rest, "::error::mine\n::end\n::"+token+"::\ngate: ") {
		t.Errorf("status %d\n%s", status, out)
	}
	if _, out, _ := gate(t, files, "GATE_PROGRAM=./p"); strings.Contains(out, "stop-commands") {
		t.Errorf("elsewhere:\n%s", out)
	}
}
