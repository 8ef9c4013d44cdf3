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
	"numaopt/internal/runfile"
)

// doctorOptions is numaopt doctor's command line, and the machine it looks at.
type doctorOptions struct {
	json bool
	save string // directory for a copy of what describes the machine; "" is none

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

Exit status: 0, or 3 if nothing that runs a program can work here.`,
		Example: `  numaopt doctor
  numaopt doctor --json
  numaopt doctor --save machine      # for a bug report: a copy of the files it read`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opt) },
	}
	f := cmd.Flags()
	f.BoolVar(&opt.json, "json", false, "print JSON")
	f.StringVar(&opt.save, "save", "", "copy the files that describe this machine to `DIR`")
	return cmd
}

func runDoctor(ctx context.Context, std *stdio, opt doctorOptions) error {
	if opt.root == nil {
		opt.root, opt.prober = os.DirFS("/"), doctor.Machine{FindLib: findLib}
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
	if !r.Works() {
		return cannot(errors.New("no program can be profiled, placed or run in the lab here: see the fixes above"))
	}
	return nil
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
