package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"numaopt/internal/profile/profiletest"
)

func TestReportHTML(t *testing.T) {
	dir := t.TempDir()
	p := profiletest.WithCode(serialInit())
	p.Run.Dir, p.Run.Start = dir, time.Now().Add(time.Hour)
	if err := os.WriteFile(filepath.Join(dir, "work.c"), []byte(strings.Repeat("\n", 20)+"u[i] = 1;\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	path, page := nprof(t, p), filepath.Join(dir, "app.html")
	yaml := filepath.Join(dir, "app.plan.yaml")
	if code, _, errs := numaopt("plan", path, "-o", yaml); code != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		name string
		args []string
		want []string
		not  []string
	}{
		{"plain", nil, []string{"Serial initialisation", "numaopt plan " + path, "work.c:21 (work)"}, []string{"u[i] = 1;", "With the plan"}},
		{"sources", []string{"--sources"}, []string{"u[i] = 1;", "init.c</code> ", "(not found)"}, nil},
		{"plan", []string{"--plan", yaml}, []string{"With the plan", "numaopt apply " + yaml + " -- ./app 100"}, []string{"made from another profile"}},
		{"only", []string{"--only", "work"}, []string{"work.c:21 (work)"}, []string{"init.c:5 (main)</td><td class=\"n\" data-s="}},
	} {
		code, out, errs := numaopt(append([]string{"report", path, "--format", "html", "-o", page}, c.args...)...)
		if code != 0 || out != "" || errs != "" {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q", c.name, code, out, errs)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: the page has no %q", c.name, want)
			}
		}
		for _, not := range c.not {
			if strings.Contains(string(text), not) {
				t.Errorf("%s: the page has %q", c.name, not)
			}
		}
	}
	if code, out, _ := numaopt("report", path, "--format", "html"); code != 0 || !strings.HasPrefix(out, "<!DOCTYPE html>") {
		t.Errorf("exit status %d, %.40q to stdout", code, out)
	}
	if code, _, errs := numaopt("report", path, "--format", "html", "--plan", path); code != 2 || !strings.Contains(errs, "app.nprof") {
		t.Errorf("a plan that is none: exit status %d, %q", code, errs)
	}
	if code, _, errs := numaopt("report", path, "--format", "html", "-o", filepath.Join(dir, "none", "x.html")); code != 2 || !strings.Contains(errs, "no such file") {
		t.Errorf("no such folder: exit status %d, %q", code, errs)
	}
	if code, _, errs := numaopt("report", path, "--format", "html", "-o", "/proc/x.html"); code != 2 || !strings.Contains(errs, "write report /proc/x.html") {
		t.Errorf("where nothing can be written: exit status %d, %q", code, errs)
	}
}

// A source file that was edited after the profile was made is shown, and said to be so.
func TestSourceChanged(t *testing.T) {
	p := serialInit()
	p.Run.Dir, p.Run.Start = t.TempDir(), time.Now().Add(-time.Hour)
	if err := os.WriteFile(filepath.Join(p.Run.Dir, "a.c"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, doubt := range map[string]string{"a.c": "changed since", "/gone/a.c": "changed since", "src/b.c": "not found"} {
		if s := sourceOf(&p.Run, path); !strings.HasPrefix(s.Doubt, doubt) || (s.Text == nil) != (doubt == "not found") {
			t.Errorf("%s: %q, %q", path, s.Doubt, s.Text)
		}
	}
}
