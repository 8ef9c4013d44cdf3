package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manOptions is numaopt man's command line.
type manOptions struct {
	dir  string
	root *cobra.Command
}

func newManCmd(std *stdio, run func(context.Context, manOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "write the manual pages to a directory",
		Example: `  numaopt man /usr/local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), manOptions{dir: args[0], root: cmd.Root()})
		},
	}
}

// runMan writes numaopt.1 and one page per command.
func runMan(_ context.Context, std *stdio, opt manOptions) error {
	if err := os.MkdirAll(opt.dir, 0o755); err != nil {
		return err
	}
	opt.root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "numaopt " + version(), Manual: "numaopt"}
	if err := doc.GenManTree(opt.root, header, opt.dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(opt.dir, "numaopt*.1"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.err, "numaopt: %d pages in %s\nnext: man %s\n", len(pages), opt.dir, quote([]string{filepath.Join(opt.dir, "numaopt.1")}))
	return err
}
