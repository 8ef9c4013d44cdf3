package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"numaopt/internal/topo"
)

// try runs numaopt in this process.
func try(ctx context.Context, args ...string) (code int, out, err string) {
	var o, e bytes.Buffer
	code = run(ctx, &stdio{in: strings.NewReader(""), out: &o, err: &e}, args)
	return code, o.String(), e.String()
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{&exitError{code: 1}, 1},
		{&exitError{code: 139}, 139},
		{errors.New("profile x.nprof: truncated"), 2},
		{usagef("no program"), 2},
		{cannot(errors.New("no emulator")), 3},
		{fmt.Errorf("check: %w", topo.ErrOneNode), 3},
		{fmt.Errorf("write: %w", syscall.EPIPE), 141},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
	if cannot(nil) != nil {
		t.Error("cannot(nil) is an error")
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"frobnicate", `unknown command "frobnicate"`},
		{"docter", "did you mean doctor?"},
		{"--frobnicate", "unknown flag: --frobnicate"},
		{"doctor extra", `unknown command "extra"`},
		{"doctor --save", "flag needs an argument: --save"},
		{"doctor --json=perhaps", "invalid argument"},
		{"man", "accepts 1 arg(s), received 0"},
		{"lab", "no program: it goes after --"},
		{"lab ./app", `"./app": the program goes after --`},
		{"lab ./app -n 5", "the program and its own flags go after --"},
		{"lab x -- ./app", `unexpected argument "x" before --`},
		{"lab --", "no program"},
	} {
		code, out, stderr := try(context.Background(), strings.Fields(c.args)...)
		if code != 2 || out != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "numaopt: ") != 1 || !strings.Contains(stderr, "--help' explains it") {
			t.Errorf("numaopt %s: exit %d, stdout %q, stderr %q; want 2 and %q", c.args, code, out, stderr, c.want)
		}
	}
}

func TestFirstSteps(t *testing.T) {
	code, out, stderr := try(context.Background())
	if code != 0 || !strings.Contains(out, "numaopt doctor") || stderr != "" {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, stderr)
	}
}

func TestVersion(t *testing.T) {
	code, out, stderr := try(context.Background(), "version", "--json")
	var b map[string]any
	if err := json.Unmarshal([]byte(out), &b); err != nil || code != 0 || stderr != "" {
		t.Fatalf("exit %d, %v, stdout %q, stderr %q", code, err, out, stderr)
	}
	for _, field := range []string{"numaopt", "go", "system", "runtime_abi", "profile_format", "plan_format"} {
		if b[field] == nil || b[field] == "" || b[field] == 0.0 {
			t.Errorf("no %s in %s", field, out)
		}
	}
	_, text, _ := try(context.Background(), "version")
	_, line, _ := try(context.Background(), "--version")
	if !strings.HasPrefix(text, line) || line != "numaopt "+b["numaopt"].(string)+"\n" {
		t.Errorf("version prints %q, --version %q", text, line)
	}
}

func TestSignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&signalError{syscall.SIGINT})
	code, _, stderr := try(ctx, "doctor")
	if code != 130 || !strings.Contains(stderr, "signal 2") {
		t.Errorf("exit %d, stderr %q; want 130", code, stderr)
	}
}

// TestMenu holds every command to the form that --help and the manual rely on.
func TestMenu(t *testing.T) {
	std := &stdio{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	for _, cmd := range commands(std) {
		name := cmd.Name()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || strings.ToLower(cmd.Short[:1]) != cmd.Short[:1] {
			t.Errorf("%s: the one line %q should be lower case without a full stop", name, cmd.Short)
		}
		if len(examples(cmd)) == 0 {
			t.Errorf("%s has no example", name)
		}
		if cmd.RunE == nil || cmd.Run != nil {
			t.Errorf("%s: wants RunE, so that its errors are printed in one place", name)
		}
	}
}

// TestExamples checks the command line of every example in --help: the command,
// its flags and the number of its arguments.
func TestExamples(t *testing.T) {
	std := &stdio{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	for _, cmd := range commands(std) {
		for _, line := range examples(cmd) {
			root := newRootCmd(std)
			ran := ""
			for _, c := range commands(std) {
				c.RunE = func(cmd *cobra.Command, args []string) error {
					ran = cmd.Name()
					attached := cmd.Flags().Changed("pid") || cmd.Flags().Changed("all-cpus")
					if strings.Contains(cmd.Use, " -- ") && !attached && cmd.ArgsLenAtDash() < 0 {
						return errors.New("no -- before the program")
					}
					return nil
				}
				root.AddCommand(c)
			}
			root.SetArgs(shellWords(line)[1:])
			if err := root.Execute(); err != nil || ran != cmd.Name() {
				t.Errorf("%s: example %q: ran %q, %v", cmd.Name(), line, ran, err)
			}
		}
	}
}

// examples are the lines of a command's examples that call numaopt.
func examples(cmd *cobra.Command) []string {
	var out []string
	for _, line := range strings.Split(cmd.Example, "\n") {
		line, _, _ = strings.Cut(line, " #")
		for _, part := range strings.FieldsFunc(line, func(r rune) bool { return r == '|' || r == '&' || r == ';' }) {
			if part = strings.TrimSpace(part); strings.HasPrefix(part, "numaopt ") {
				out = append(out, part)
			}
		}
	}
	return out
}

// shellWords splits a line at spaces, heeds quotes and leaves out redirections.
func shellWords(line string) []string {
	var words []string
	fields := strings.Fields(line)
	for i := 0; i < len(fields); i++ {
		switch w := fields[i]; w {
		case ">", "2>", ">>", "<":
			i++ // its file
		default:
			if !strings.HasPrefix(strings.TrimPrefix(w, "2"), ">") {
				words = append(words, strings.Trim(w, `'"`))
			}
		}
	}
	return words
}
