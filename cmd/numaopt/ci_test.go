package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

// ciRepository is a Git repository of a program that initialises in parallel, with
// numaopt as a runner would have it.
type ciRepository struct {
	t       *testing.T
	dir     string
	numaopt string // the binary
	env     []string
}

const ciSource = "src/heat.c"

func newCIRepository(t *testing.T) *ciRepository {
	if testing.Short() {
		t.Skip("emulates a program")
	}
	numaopt, err := exec.LookPath("numaopt") // this test binary, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	c := &ciRepository{t: t, dir: t.TempDir(), numaopt: numaopt}
	c.env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if os.Getenv(runfile.LibDir) == "" {
		c.env = append(c.env, runfile.LibDir+"="+filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	text, err := os.ReadFile(filepath.Join(programs.Root(), "testdata", "programs", "heat", "heat.c"))
	if err != nil {
		t.Fatal(err)
	}
	c.git("init", "-q")
	c.write(".gitignore", "/heat\n/numaopt-check/\n/.numaopt\n")
	c.commit("parallel initialisation", string(text))
	return c
}

func (c *ciRepository) git(args ...string) {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (c *ciRepository) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *ciRepository) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// commit writes the source and commits it.
func (c *ciRepository) commit(message, source string) {
	c.t.Helper()
	c.write(ciSource, source)
	c.git("add", "-A")
	c.git("commit", "-q", "-m", message)
}

// build is the step before the check, the repository's own.
func (c *ciRepository) build() {
	c.t.Helper()
	cmd := exec.Command("gcc", "-O2", "-g", "-fopenmp", ciSource, "-o", "heat")
	cmd.Dir = c.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
}

// serial is the source without the directive that initialises in parallel, and the line of
// the first touch.
func serial(source string) (changed string, line int) {
	changed = strings.Replace(source, "#pragma omp parallel for schedule(static)\n", "", 1)
	return changed, 1 + strings.Count(changed[:strings.Index(changed, "from[i * n + j] = to[")], "\n")
}

// run runs one step of a job as a runner does.
func (c *ciRepository) run(script, dir string, env []string) (string, int) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "step.sh")
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", file)
	cmd.Dir, cmd.Env = dir, append(c.env[:len(c.env):len(c.env)], env...)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// action is what a runner reads of an action.yml.
type action struct {
	Inputs map[string]struct {
		Default  string
		Required bool
	}
	Runs struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	Name  string
	If    string
	Uses  string
	Shell string
	Dir   string `yaml:"working-directory"`
	Env   map[string]string
	With  map[string]string
	Run   string
}

// job is a run of the action.
type job struct {
	status           int
	out, summary     string
	uploaded         []string // files of the artifact
	inputs           map[string]string
	path             string
	actionDir, files string
}

// ciArtifact is what a check of two runs leaves.
const ciArtifact = "baseline.json check.sarif check.xml report.html run1.log run1.nprof run2.log run2.nprof"

// artifact is the names of the uploaded files.
func (j *job) artifact() string {
	var names []string
	for _, file := range j.uploaded {
		names = append(names, filepath.Base(file))
	}
	return strings.Join(names, " ")
}

var expression = regexp.MustCompile(`\$\{\{ *([^} ]+) *\}\}`)

// expand evaluates the expressions of an action: inputs and the action's own folder.
func (j *job) expand(t *testing.T, text string) string {
	return expression.ReplaceAllStringFunc(text, func(s string) string {
		name := expression.FindStringSubmatch(s)[1]
		if input, ok := strings.CutPrefix(name, "inputs."); ok {
			value, known := j.inputs[input]
			if !known {
				t.Fatalf("the action has no input %s", input)
			}
			return value
		}
		if name == "github.action_path" {
			return j.actionDir
		}
		t.Fatalf("expression %s", s)
		return ""
	})
}

// wanted evaluates the condition of a step.
func (j *job) wanted(t *testing.T, condition string) bool {
	input, empty := strings.CutSuffix(strings.TrimPrefix(condition, "inputs."), " == ''")
	switch {
	case condition == "":
		return j.status == 0
	case condition == "always()":
		return true
	case empty:
		return j.status == 0 && j.inputs[input] == ""
	}
	t.Fatalf("condition %s", condition)
	return false
}

// action runs the steps of scripts/ci/action.yml.
func (c *ciRepository) action(inputs map[string]string) *job {
	c.t.Helper()
	c.build()
	j := &job{inputs: map[string]string{}, actionDir: filepath.Join(programs.Root(), "scripts", "ci"), files: c.t.TempDir(), path: os.Getenv("PATH")}
	text, err := os.ReadFile(filepath.Join(j.actionDir, "action.yml"))
	if err != nil {
		c.t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		c.t.Fatal(err)
	}
	for name, x := range a.Inputs {
		j.inputs[name] = x.Default
	}
	for name, value := range inputs {
		if _, ok := a.Inputs[name]; !ok {
			c.t.Fatalf("no input %s", name)
		}
		j.inputs[name] = value
	}
	for _, s := range a.Runs.Steps {
		if j.wanted(c.t, s.If) {
			c.step(j, s)
		}
	}
	summary, _ := os.ReadFile(filepath.Join(j.files, "summary"))
	j.summary = string(summary)
	return j
}

func (c *ciRepository) step(j *job, s actionStep) {
	switch {
	case strings.HasPrefix(s.Uses, "actions/upload-artifact@"):
		j.uploaded, _ = filepath.Glob(filepath.Join(c.dir, j.expand(c.t, s.With["path"]), "*"))
		return
	case s.Uses != "" || s.Shell != "bash":
		c.t.Fatalf("step %s uses %s in shell %s", s.Name, s.Uses, s.Shell)
	}
	env := []string{
		"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + c.dir, "GITHUB_ACTION_PATH=" + j.actionDir, "RUNNER_TEMP=" + j.files, "PATH=" + j.path,
		"GITHUB_PATH=" + filepath.Join(j.files, "path"), "GITHUB_STEP_SUMMARY=" + filepath.Join(j.files, "summary"),
	}
	for name, value := range s.Env {
		env = append(env, name+"="+j.expand(c.t, value))
	}
	out, status := c.run(j.expand(c.t, s.Run), filepath.Join(c.dir, j.expand(c.t, s.Dir)), env)
	j.out += out
	if j.status == 0 {
		j.status = status
	}
	added, _ := os.ReadFile(filepath.Join(j.files, "path"))
	for _, dir := range strings.Fields(string(added)) {
		j.path = dir + ":" + j.path
	}
	if err := os.WriteFile(filepath.Join(j.files, "path"), nil, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// TestGitHubAction runs the action's steps on a repository whose program then gets a
// serial initialisation, which is reverted.
func TestGitHubAction(t *testing.T) {
	c := newCIRepository(t)
	inputs := map[string]string{"program": "./heat", "args": "'512' 4", "numaopt": c.numaopt, "runs": "2", "max-remote": "20\nstep=10\n"}

	j := c.action(inputs)
	if j.status != 0 || !strings.Contains(j.out, "\nok: ") || strings.Contains(j.out, "::error") {
		t.Fatalf("parallel initialisation: status %d\n%s", j.status, j.out)
	}
	if !strings.Contains(j.summary, "| loop step |") || j.artifact() != ciArtifact {
		t.Errorf("summary %q, artifact %q", j.summary, j.artifact())
	}
	c.write("numa.json", c.read("numaopt-check/baseline.json"))
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "baseline")
	inputs["baseline"] = "numa.json"

	parallel := c.read(ciSource)
	source, line := serial(parallel)
	c.commit("serial initialisation", source)
	j = c.action(inputs)
	want := fmt.Sprintf("\n::error file=%s,line=%d,title=numaopt::object heat.c:", ciSource, line)
	if j.status != 1 || !strings.Contains(j.out, "\nFAIL: ") || !strings.Contains(j.out, want) || !strings.Contains(j.out, "first touched in serial code here") {
		t.Errorf("serial initialisation: status %d, want 1 and %q\n%s", j.status, want, j.out)
	}
	if !strings.Contains(j.summary, "**FAIL**") || !strings.Contains(j.summary, fmt.Sprintf("%s:%d", ciSource, line)) || j.artifact() != ciArtifact {
		t.Errorf("summary %q, artifact %q", j.summary, j.artifact())
	}

	c.git("revert", "--no-edit", "HEAD")
	if j = c.action(inputs); j.status != 0 || strings.Contains(j.out, "::") {
		t.Errorf("reverted: status %d\n%s", j.status, j.out)
	}
	// An edit above the program's functions changes no name in the baseline.
	c.commit("licence", "// MIT\n// licence\n\n"+parallel)
	if j = c.action(inputs); j.status != 0 || strings.Contains(j.out, "::") {
		t.Errorf("lines moved: status %d\n%s", j.status, j.out)
	}
}

// Inputs are data: nothing in them is run.
func TestGitHubActionMisuse(t *testing.T) {
	c := newCIRepository(t)
	for _, k := range []struct {
		name   string
		inputs map[string]string
		status int
		want   string
	}{
		{"no program", map[string]string{"max-remote": "10"}, 2, "GATE_PROGRAM is not set"},
		{"program that is not there", map[string]string{"program": "./nothere", "max-remote": "10"}, 2, "nothere"},
		{"code in arguments", map[string]string{"program": "./heat", "args": "256 $(touch pwned) `touch pwned`; touch pwned", "max-remote": "99"}, 0, "ok: "},
		{"code in a limit", map[string]string{"program": "./heat", "args": "256 1", "max-remote": "$(touch pwned)"}, 2, "$(touch pwned)"},
		{"nothing to check", map[string]string{"program": "./heat", "args": "256 1"}, 2, "nothing to check"},
		{"baseline that is not there", map[string]string{"program": "./heat", "args": "256 1", "baseline": "none.json"}, 2, "commit numaopt-check/baseline.json of this run as that"},
		{"numaopt that is not there", map[string]string{"program": "./heat", "numaopt": "/nothere/numaopt"}, 1, "no numaopt in /nothere"},
	} {
		inputs := map[string]string{"numaopt": c.numaopt, "runs": "1"}
		for name, value := range k.inputs {
			inputs[name] = value
		}
		if j := c.action(inputs); j.status != k.status || !strings.Contains(j.out, k.want) {
			t.Errorf("%s: status %d, want %d and %q\n%s", k.name, j.status, k.status, k.want, j.out)
		}
		if _, err := os.Stat(filepath.Join(c.dir, "pwned")); err == nil {
			t.Fatalf("%s: was run", k.name)
		}
	}
}

// TestGitLab runs the script lines of scripts/ci/gitlab.yml in the same way.
func TestGitLab(t *testing.T) {
	c := newCIRepository(t)
	var jobs map[string]struct {
		Image     string
		Variables map[string]string
		Before    []string `yaml:"before_script"`
		Script    []string
		Artifacts struct {
			When    string
			Paths   []string
			Reports map[string]string
		}
	}
	text, err := os.ReadFile(filepath.Join(programs.Root(), "scripts", "ci", "gitlab.yml"))
	if err == nil {
		err = yaml.UnmarshalWithOptions(text, &jobs, yaml.Strict())
	}
	if err != nil {
		t.Fatal(err)
	}
	j := jobs[".numaopt-check"]
	if err := os.Symlink(programs.Root(), filepath.Join(c.dir, ".numaopt")); err != nil {
		t.Fatal(err)
	}
	run := func() (string, int) {
		c.build()
		var env []string
		for name, value := range j.Variables {
			env = append(env, name+"="+value)
		}
		env = append(env, "NUMAOPT_FROM="+c.numaopt, "GATE_PROGRAM=./heat", "GATE_ARGS=512 4", "GATE_MAX_REMOTE=20", "GATE_RUNS=1")
		return c.run(strings.Join(append(j.Before, j.Script...), "\n"), c.dir, env)
	}
	if out, status := run(); status != 0 || !strings.Contains(out, "\nok: ") {
		t.Fatalf("parallel initialisation: status %d\n%s", status, out)
	}
	source, line := serial(c.read(ciSource))
	c.commit("serial initialisation", source)
	out, status := run()
	if status != 1 || !strings.Contains(out, "\nFAIL: ") {
		t.Errorf("serial initialisation: status %d\n%s", status, out)
	}
	if report := c.read(j.Artifacts.Reports["junit"]); !strings.Contains(report, `failures="1"`) || !strings.Contains(report, fmt.Sprintf("%s:%d: ", ciSource, line)) {
		t.Errorf("%s", report)
	}
	c.git("revert", "--no-edit", "HEAD")
	if out, status := run(); status != 0 {
		t.Errorf("reverted: status %d\n%s", status, out)
	}
}

// TestCIInstall brings numaopt in each of the ways that it may be given: the folder
// that is printed has it. A stub stands for it, and for the emulator.
func TestCIInstall(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "numaopt-1.0", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"numaopt", "qemu-x86_64"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho stub 1.0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tarball := filepath.Join(dir, "numaopt-1.0.tar.gz")
	if out, err := exec.Command("tar", "-C", dir, "-czf", tarball, "numaopt-1.0").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	given := map[string]string{
		"binary": filepath.Join(bin, "numaopt"), "its folder": bin, "folder": filepath.Dir(bin), "tarball": tarball,
	}
	if _, err := exec.LookPath("curl"); err == nil {
		given["URL"] = server.URL + "/numaopt-1.0.tar.gz"
	}
	for name, from := range given {
		cmd := exec.Command(filepath.Join(programs.Root(), "scripts", "ci", "install"), from)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RUNNER_TEMP="+t.TempDir())
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, err.(*exec.ExitError).Stderr)
			continue
		}
		if version, err := exec.Command(filepath.Join(strings.TrimSpace(string(out)), "numaopt")).Output(); err != nil || string(version) != "stub 1.0\n" {
			t.Errorf("%s: %q: %v", name, out, err)
		}
	}
}

// TestBuildLacksMake runs copies of scripts where of what they need only make is missing:
// install then has setup bring it, and build says so.
func TestBuildLacksMake(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	copied := func(name string) string {
		text, err := os.ReadFile(filepath.Join(programs.Root(), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"bash", "basename", "dirname", "env", "head", "id", "mkdir", "sed", "sort", "tail"} {
		path, err := exec.LookPath(tool)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, tool))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(bin, "go"), "#!/bin/sh\necho go1.99.0\n")
	for _, stub := range []string{"gcc", "qemu-x86_64"} {
		write(filepath.Join(bin, stub), "#!/bin/sh\n")
	}
	run := func(script string) string {
		write(filepath.Join(dir, script), copied(script))
		cmd := exec.Command(filepath.Join(dir, script))
		cmd.Env = []string{"PATH=" + bin}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}

	write(filepath.Join(dir, "go.mod"), copied("go.mod"))
	write(filepath.Join(dir, "scripts", "common.sh"), copied("scripts/common.sh"))
	if out := run("scripts/build"); out != "build: no gcc or make: run scripts/setup\n" {
		t.Errorf("build: %s", out)
	}
	write(filepath.Join(dir, "scripts", "setup"), "#!/bin/sh\necho setup runs\n")
	write(filepath.Join(dir, "scripts", "build"), "#!/bin/sh\n")
	write(filepath.Join(dir, "build", "numaopt"), "#!/bin/sh\n")
	if out := run("scripts/ci/install"); !strings.Contains(out, "setup runs\n") {
		t.Errorf("install: %s", out)
	}
}
