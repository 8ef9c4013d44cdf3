package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"numaopt/internal/topo"
)

// Exit codes of numaopt's own. A command that ran a program ends with that
// program's status instead, by an exitError without err.
const (
	exitDone        = 0
	exitCheckFailed = 1
	exitUsage       = 2 // bad usage or bad input
	exitCannot      = 3 // this machine cannot measure what was asked
)

// stdio is where a command reads and writes. Results go to out; progress,
// warnings and errors to err. A program that a command runs gets the process's
// own files where these are files.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// exitError ends numaopt with code. A nil err prints nothing: the verdict, or
// the program's own output, has said it already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is a command line that cannot be carried out; it is printed with a
// pointer to the command's help and exits 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// cannot marks err as a limit of this machine: exit 3. nil stays nil.
func cannot(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitCannot, err}
}

// commands is the menu, in the order of a session. Each constructor is given
// the function that does the work, so that a test can pass its own.
func commands(std *stdio) []*cobra.Command {
	return []*cobra.Command{
		newDoctorCmd(std, func(ctx context.Context, opt doctorOptions) error { return runDoctor(ctx, std, opt) }),
		newProfileCmd(std, func(ctx context.Context, opt profileOptions) error { return runProfile(ctx, std, opt) }),
		newImportCmd(std, func(ctx context.Context, opt importOptions) error { return runImport(ctx, std, opt) }),
		newStatCmd(std, func(ctx context.Context, opt statOptions) error { return runStat(ctx, std, opt) }),
		newReportCmd(std, func(ctx context.Context, opt reportOptions) error { return runReport(ctx, std, opt) }),
		newPlanCmd(std, func(ctx context.Context, opt planOptions) error { return runPlan(ctx, std, opt) }),
		newApplyCmd(std, func(ctx context.Context, opt applyOptions) error { return runApply(ctx, std, opt) }),
		newCheckCmd(std, func(ctx context.Context, opt checkOptions) error { return runCheck(ctx, std, opt) }),
		newDiffCmd(std, func(ctx context.Context, opt diffOptions) error { return runDiff(ctx, std, opt) }),
		newLabCmd(std, func(ctx context.Context, opt labOptions) error { return runLab(ctx, std, opt) }),
		newVersionCmd(std, func(_ context.Context, asJSON bool) error { return runVersion(std, asJSON) }),
		newManCmd(std, func(ctx context.Context, opt manOptions) error { return runMan(ctx, std, opt) }),
	}
}

func init() { cobra.EnableCommandSorting = false } // the menu has its order

// run is numaopt: it carries out args and returns the exit status. It is the one
// place that prints an error.
func run(ctx context.Context, std *stdio, args []string) int {
	root := newRootCmd(std)
	for _, c := range commands(std) {
		addCompletions(c)
		root.AddCommand(c)
	}
	started := markStart(root)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !*started {
		// Everything cobra itself refuses is a matter of the command line.
		err = &usageError{err}
	}
	if sig := (*signalError)(nil); err != nil && errors.As(context.Cause(ctx), &sig) && errors.Is(err, context.Canceled) {
		err = &exitError{128 + int(sig.sig), sig}
	}
	printError(std.err, cmd, args, err)
	return exitCode(err)
}

func newRootCmd(std *stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "numaopt",
		Short: "find, plan and apply the NUMA placement of an unmodified program",
		Long: `numaopt finds out which NUMA node every page of a program is used from, plans
where the pages should be, and runs the unmodified program with that plan.

Results go to stdout; progress, warnings and errors to stderr. Exit status:
0 done, 1 a check failed, 2 bad usage or input, 3 this machine cannot measure
what was asked. Commands that run a program end with the program's status.

Environment: NUMAOPT_LIB is the directory of the runtime and the plugins (default:
lib/numaopt beside the program), NUMAOPT_KERNEL one with the kernel of the lab's
guest. NO_COLOR leaves colors out. TMPDIR is where large files go while they are made.
There is no configuration file: what a run depends on is on its command line.`,
		Version:               version(),
		DisableFlagsInUseLine: true,
		SilenceUsage:          true,
		SilenceErrors:         true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(std.out, firstSteps)
			return err
		},
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetVersionTemplate("numaopt {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

const firstSteps = `numaopt: which NUMA node is every page of a program used from, where should it
be, and what does that save? No source change, no rebuild.

Start with:
  numaopt doctor                                what can be measured on this machine
  numaopt profile -o app.nprof -- ./app ARGS    run a program and see who uses its pages
Then:
  numaopt report app.nprof                      remote accesses, by object and loop
  numaopt report app.nprof --format html -o app.html  the same to look at, in a browser
  numaopt plan app.nprof -o app.plan.yaml       where the pages should be, and why
  numaopt apply app.plan.yaml -- ./app ARGS     run the program with that plan
  numaopt lab --plan app.plan.yaml -- ./app ARGS  before and after, counted in a 4-node VM

'numaopt --help' lists every command, 'numaopt COMMAND --help' explains one.
`

func unknownCommand(root *cobra.Command, name string) error {
	msg := fmt.Sprintf("unknown command %q", name)
	root.SuggestionsMinimumDistance = 2
	if s := root.SuggestionsFor(name); len(s) > 0 {
		msg += "; did you mean " + strings.Join(s, " or ") + "?"
	}
	return &usageError{errors.New(msg)}
}

// markStart wraps every command's RunE; the result says whether one was entered.
// An error before that is about the command line.
func markStart(cmd *cobra.Command) *bool {
	started := new(bool)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if inner := c.RunE; inner != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				*started = true
				return inner(cmd, args)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cmd)
	return started
}

// splitProgram divides the arguments of a command at "--": what stands before it
// are the command's own operands, of which there must be own, behind it the
// program and its arguments, of which there must be at least one.
func splitProgram(cmd *cobra.Command, args []string, own int) (operands, program []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		if len(args) > own {
			return nil, nil, usagef("%q: the program goes after --", args[own])
		}
		return nil, nil, usagef("no program: it goes after --")
	}
	operands, program = args[:dash], args[dash:]
	switch {
	case len(operands) < own:
		return nil, nil, usagef("%d of %d arguments before --", len(operands), own)
	case len(operands) > own:
		return nil, nil, usagef("unexpected argument %q before --", operands[own])
	case len(program) == 0:
		return nil, nil, usagef("no program after --")
	}
	return operands, program, nil
}

// exitCode is the exit status that err means.
func exitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, topo.ErrOneNode):
		return exitCannot
	case errors.Is(err, syscall.EPIPE):
		return 128 + int(syscall.SIGPIPE)
	}
	return exitUsage
}

// printError writes err once, and for a usage error where to read on. A reader
// that went away (EPIPE) is told nothing.
func printError(w io.Writer, cmd *cobra.Command, args []string, err error) {
	var exit *exitError
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.As(err, &exit) && exit.err == nil {
		return
	}
	fmt.Fprintf(w, "numaopt: %v\n", err)
	if path := (*os.PathError)(nil); errors.Is(err, syscall.ENOSPC) && errors.As(err, &path) && strings.HasPrefix(path.Path, os.TempDir()) {
		fmt.Fprintf(w, "make room in %s, or name another directory by TMPDIR\n", os.TempDir())
	}
	var usage *usageError
	if !errors.As(err, &usage) {
		return
	}
	fmt.Fprintf(w, "usage: %s\n", cmd.UseLine())
	if strings.Contains(cmd.Use, " -- ") && !hasDash(args) {
		fmt.Fprintln(w, "the program and its own flags go after --")
	}
	fmt.Fprintf(w, "'%s --help' explains it\n", cmd.CommandPath())
}

func hasDash(args []string) bool {
	for _, a := range args {
		if a == "--" {
			return true
		}
	}
	return false
}
