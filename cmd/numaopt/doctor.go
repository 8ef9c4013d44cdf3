package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"numaopt/internal/doctor"
	"numaopt/internal/probe"
	"numaopt/internal/runfile"
	"numaopt/internal/topo"
)

// doctorOptions is numaopt doctor's command line, and the machine it looks at.
type doctorOptions struct {
	json    bool
	latency bool
	save    string // directory for a copy of what describes the machine; "" is none

	root   fs.FS // nil is this machine
	prober doctor.Prober
}

func newDoctorCmd(std *stdio, run func(context.Context, doctorOptions) error) *cobra.Command {
	var opt doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "say what works on this machine, and the fix for what does not",
		Long: `doctor looks at the machine: nodes and CPUs, what of them this process may use,
the kernel's settings that matter, memory events, emulators, numaopt's own parts.
For each it says what is there, what that means for numaopt, and where something
is missing the one fix. It changes nothing.

--latency measures instead what a load from each node's memory costs the CPUs of each
node, and what they can read in a second: a second or two for each pair, on a machine
that should be idle.

Exit status: 0, or 3 if nothing that runs a program can work here.`,
		Example: `  numaopt doctor
  numaopt doctor --json
  numaopt doctor --latency           # ns and GB/s between the nodes
  numaopt doctor --latency --json > latency.json           # for plan --latency
  numaopt doctor --save machine      # for a bug report: a copy of the files it read`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opt) },
	}
	f := cmd.Flags()
	f.BoolVar(&opt.json, "json", false, "print JSON")
	f.BoolVar(&opt.latency, "latency", false, "measure latency and bandwidth of each pair of nodes")
	f.StringVar(&opt.save, "save", "", "copy the files that describe this machine to `DIR`")
	return cmd
}

func runDoctor(ctx context.Context, std *stdio, opt doctorOptions) error {
	if opt.root == nil {
		opt.root, opt.prober = os.DirFS("/"), doctor.Machine{FindLib: findLib}
	}
	if opt.latency {
		return runLatency(ctx, std, opt)
	}
	r := doctor.Examine(ctx, opt.root, opt.prober)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := writeDoctor(std, opt, r); err != nil {
		return err
	}
	if opt.save != "" {
		if err := saveMachine(std, opt, r); err != nil {
			return fmt.Errorf("save %s: %w", opt.save, err)
		}
	}
	if next := afterDoctor(r); next != "" && !opt.json {
		fmt.Fprintf(std.err, "next: %s\n", next)
	}
	if !r.Works() {
		return cannot(errors.New("no program can be profiled, placed or run in the lab here: see the fixes above"))
	}
	return nil
}

// afterDoctor is the command that comes next in a session, of those that work here.
func afterDoctor(r *doctor.Report) string {
	for _, a := range r.Abilities {
		switch {
		case a.Works && a.Name == "profile":
			return "numaopt profile -o app.nprof -- ./app ARGS"
		case a.Works && a.Name == "lab":
			return "numaopt lab --topology 4x2 -- ./app ARGS"
		}
	}
	return ""
}

// runLatency measures memory, and shows how far it is where a terminal looks on.
func runLatency(ctx context.Context, std *stdio, opt doctorOptions) error {
	if opt.save != "" {
		return usagef("--latency and --save: one of them")
	}
	machine, err := topo.Read(opt.root)
	if err != nil {
		return err
	}
	measure := probe.Options{Machine: machine, Root: opt.root, Stop: ctx.Done()}
	bar := newProgress(std.err, "")
	defer bar.end()
	measure.Progress = func(from, to, done, all int) {
		bar.describe(fmt.Sprintf("node %d, memory of node %d", from, to))
		bar.show(int64(done), int64(all))
	}
	t, err := probe.New(measure)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return cannot(err)
	}
	warnNotes(std, t.Warnings)
	if opt.json {
		return t.WriteJSON(std.out)
	}
	return t.WriteText(std.out)
}

func writeDoctor(std *stdio, opt doctorOptions, r *doctor.Report) error {
	if opt.json {
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.Print(std.out)
}

func saveMachine(std *stdio, opt doctorOptions, r *doctor.Report) error {
	n, err := doctor.Save(opt.root, opt.save)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(opt.save, "doctor.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "numaopt: %d files of this machine and doctor.json are in %s\n", n, opt.save)
	return nil
}

// findLib is runfile.Lib for a file that is there.
func findLib(name string) (string, error) {
	path, err := runfile.Lib(name)
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}
