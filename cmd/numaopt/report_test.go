package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// numaopt runs a command line and returns its exit status and output.
func numaopt(args ...string) (code int, out, err string) {
	var o, e bytes.Buffer
	code = run(context.Background(), &stdio{in: strings.NewReader(""), out: &o, err: &e}, args)
	return code, o.String(), e.String()
}

// nprof writes a drawn profile and returns its path.
func nprof(t *testing.T, p *profile.Profile) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.nprof")
	if err := profile.WriteFile(path, p); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		want reportOptions
		err  string
	}{
		{"a", reportOptions{profile: "a", format: "text", top: 15, sort: "cost", color: "auto"}, ""},
		{"a --format json -o b", reportOptions{profile: "a", format: "json", output: "b", top: 15, sort: "cost", color: "auto"}, ""},
		{"a --json --top 0", reportOptions{profile: "a", format: "json", sort: "cost", color: "auto"}, ""},
		{"a --loop f --object u --thread 3 --thread 0 --sort remote --color never", reportOptions{profile: "a", format: "text", top: 15, only: []string{"f"}, objects: []string{"u"}, threads: []int{3, 0}, sort: "remote", color: "never"}, ""},
		{"a --only f --only g(int,int)", reportOptions{profile: "a", format: "text", top: 15, sort: "cost", color: "auto", only: []string{"f", "g(int,int)"}}, ""},
		{"--schema", reportOptions{format: "text", top: 15, sort: "cost", color: "auto", schema: true}, ""},
		{"", reportOptions{}, "one profile"},
		{"a b", reportOptions{}, "one profile"},
		{"a --schema", reportOptions{}, "--schema"},
		{"a --format htm", reportOptions{}, "htm"},
		{"a --plan b", reportOptions{}, "--plan is for --format html"},
		{"a --top -1", reportOptions{}, "--top"},
		{"a --sort beauty", reportOptions{}, "cost, dram"},
		{"a --color red", reportOptions{}, "auto, always or never"},
		{"a --thread main", reportOptions{}, "--thread"},
	} {
		var got reportOptions
		cmd := newReportCmd(&stdio{}, func(_ context.Context, opt reportOptions) error { got = opt; return nil })
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(strings.Fields(c.args))
		err := cmd.Execute()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %q", c.args, err, c.err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(reportOptions{})); err != nil || d != "" {
			t.Errorf("%q: %v\n%s", c.args, err, d)
		}
	}
}

func TestReportCommand(t *testing.T) {
	path := nprof(t, serialInit())
	code, out, errs := numaopt("report", path)
	if code != 0 || !strings.Contains(out, "Serial initialisation") || strings.Contains(out, "next:") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	if want := "next: numaopt plan " + path + " -o " + strings.TrimSuffix(path, ".nprof") + ".plan.yaml\n"; errs != want {
		t.Errorf("stderr %q, want %q", errs, want)
	}
	if code, _, errs = numaopt("report", path, "--only", "work"); code != 0 || !strings.Contains(errs, "--only work") {
		t.Errorf("exit status %d, stderr %q", code, errs)
	}
	if code, _, errs = numaopt("report", path, "--only", "nothing"); code != 2 || !strings.Contains(errs, "work.c:20 (work)") {
		t.Errorf("exit status %d, stderr %q, want 2 and the names at hand", code, errs)
	}
	if code, out, _ = numaopt("report", path, "--object", "u", "--thread", "1", "--color", "always"); code != 0 || !strings.Contains(out, "only: object u, thread 1") || !strings.Contains(out, "\x1b[") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	if code, _, errs = numaopt("report", path, "--object", "nothing"); code != 2 || !strings.Contains(errs, "the profile has ") {
		t.Errorf("exit status %d, stderr %q, want 2 and the names at hand", code, errs)
	}
	if code, _, errs = numaopt("report", path+"x"); code != 2 || !strings.Contains(errs, "no such file") {
		t.Errorf("exit status %d, stderr %q", code, errs)
	}
	good := nprof(t, profiletest.Draw(2, 1, "u heap: 0 900 | 1 0 900"))
	if _, _, errs = numaopt("report", good); !strings.Contains(errs, "next: numaopt check") {
		t.Errorf("stderr %q", errs)
	}
	one := nprof(t, profiletest.Draw(1, 2, "u heap: 0 900 900"))
	if code, _, errs = numaopt("report", one); code != 0 || !strings.Contains(errs, "next: numaopt profile --topology 4x2") {
		t.Errorf("exit status %d, stderr %q", code, errs)
	}
}

func TestReportJSON(t *testing.T) {
	path := nprof(t, serialInit())
	file := path + ".json"
	code, out, errs := numaopt("report", path, "--format", "json", "-o", file)
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("exit status %d, stdout %q, stderr %q", code, out, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, schema, _ := numaopt("report", "--schema")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Error(err)
	}
}

// goneReader is a pipe whose reader went away.
type goneReader struct{}

func (goneReader) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

func TestReportBrokenPipe(t *testing.T) {
	path := nprof(t, serialInit())
	for _, args := range [][]string{{"report", path}, {"report", path, "--json"}, {"report", "--schema"}, {"check", path, "--max-remote", "10"}} {
		var errs bytes.Buffer
		code := run(context.Background(), &stdio{in: strings.NewReader(""), out: goneReader{}, err: &errs}, args)
		if code != 128+int(syscall.SIGPIPE) || errs.Len() != 0 {
			t.Errorf("%v: exit status %d, stderr %q", args, code, errs.String())
		}
	}
}

func TestCheckCommand(t *testing.T) {
	path := nprof(t, serialInit()) // 66.6 % remote
	dir := t.TempDir()
	base := filepath.Join(dir, "base.json")
	for _, c := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"--max-remote 70", 0, "ok: ", ""},
		{"--max-remote 10", 1, "FAIL: ", ""},
		{"--max-remote 10%", 1, "FAIL: ", ""},
		{"--max-remote 70 --metric all", 0, "of accesses are remote", ""},
		{"--max-remote 10 --write-baseline " + base, 1, "FAIL: ", "did not write"},
		{"--baseline " + base, 2, "", "--write-baseline"},
		{"--write-baseline " + base, 0, "ok: ", "wrote"},
		{"--baseline " + base, 0, "within the baseline", ""},
		{"--baseline " + base + " --max-remote 10", 1, "above the limit", ""},
		{"--baseline " + base + " --only work", 0, "in work", "another set of loops"},
		{"--max-remote 10 --only nothing", 2, "", "work.c:20 (work)"},
		{"--max-remote 10 --json", 1, `"pass": false`, ""},
		{"--max-remote 10 --format junit", 1, "<failure", ""},
		{"", 2, "", "nothing to check"},
		{"--max-remote 101", 2, "", "--max-remote"},
		{"--max-remote NaN", 2, "", "--max-remote"},
		{"--max-remote 1 --max-increase 2", 2, "", "goes with --baseline"},
		{"--baseline x --max-increase -1", 2, "", "--max-increase"},
		{"--max-remote 1 --metric l1", 2, "", "l1"},
		{"--max-remote 1 --format xml", 2, "", "xml"},
	} {
		code, out, errs := numaopt(append([]string{"check", path}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
			t.Errorf("%s: exit status %d, want %d\nstdout: %s\nstderr: %s", c.args, code, c.code, out, errs)
		}
		if c.code < 2 && !strings.Contains(c.args, "j") && strings.Count(out, "\n") != 1 {
			t.Errorf("%s: the verdict is not one line: %q", c.args, out)
		}
	}
}

func TestCheckNoVerdict(t *testing.T) {
	for name, p := range map[string]*profile.Profile{
		"one node": profiletest.Draw(1, 2, "u heap: 0 9000 9000"),
		"few":      profiletest.Draw(2, 1, "u heap: 0 9 9"),
	} {
		path := nprof(t, p)
		for _, format := range []string{"text", "json", "junit"} {
			code, out, errs := numaopt("check", path, "--max-remote", "10", "--format", format)
			if code != 3 || !strings.Contains(errs, "no verdict") {
				t.Errorf("%s, %s: exit status %d, stderr %q", name, format, code, errs)
			}
			switch format {
			case "text":
				if out != "" {
					t.Errorf("%s: stdout %q", name, out)
				}
			case "json":
				var v map[string]any
				if err := json.Unmarshal([]byte(out), &v); err != nil || v["pass"] != nil {
					t.Errorf("%s: %v %v", name, v, err)
				}
			case "junit":
				if !strings.Contains(out, "<skipped") {
					t.Errorf("%s: %s", name, out)
				}
			}
		}
	}
}

func TestCheckFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); errors.Is(err, os.ErrNotExist) {
		t.Skip("no /dev/full")
	}
	path := nprof(t, serialInit())
	for _, args := range [][]string{{"check", path, "--write-baseline", "/dev/full"}, {"report", path, "-o", "/dev/full"}} {
		if code, _, errs := numaopt(args...); code != 2 || !strings.Contains(errs, "no space left") {
			t.Errorf("%v: exit status %d, stderr %q", args, code, errs)
		}
	}
}

// TestReadSource: a profile names any file; only a source is read.
func TestReadSource(t *testing.T) {
	dir := t.TempDir()
	fifo, source, large := filepath.Join(dir, "fifo.c"), filepath.Join(dir, "a.c"), filepath.Join(dir, "large.c")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte("int a;"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, mostSource+1); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{fifo: "", "/dev/zero": "", large: "", dir: "", source: "int a;"} {
		if got := readSource(file); string(got) != want {
			t.Errorf("%s: %d bytes", file, len(got))
		}
	}
}
