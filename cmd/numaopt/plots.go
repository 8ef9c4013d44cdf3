package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/figure"
	"numaopt/internal/profile"
	"numaopt/internal/report"
	"numaopt/internal/safefile"
	"numaopt/internal/shape"
	"numaopt/internal/symbol"
)

// writePlots writes each figure of r as SVG and PNG into the folder of --plots, and
// says on stderr which files there are and which figures there are not.
func writePlots(std *stdio, r *reportInput) error {
	in, err := figureInput(r)
	if err != nil {
		return err
	}
	figures, missing := figure.Of(in, figure.DefaultOptions())
	if err := os.MkdirAll(r.opt.plots, 0o777); err != nil {
		return fmt.Errorf("folder of plots: %w", err)
	}
	for _, f := range figures {
		path := filepath.Join(r.opt.plots, f.Name)
		for _, format := range []struct {
			ending string
			write  func(io.Writer) error
		}{{".svg", f.SVG}, {".png", f.PNG}} {
			if err := safefile.Write(path+format.ending, format.write); err != nil {
				return fmt.Errorf("write plot: %w", err)
			}
		}
		fmt.Fprintf(std.err, "numaopt: wrote %s.svg and .png\n", path)
	}
	for _, m := range missing {
		fmt.Fprintf(std.err, "numaopt: no %s: %s\n", strings.Join(m.Names, ", "), m.Why)
	}
	return nil
}

// figureInput is what figures are drawn of, with the run of --before.
func figureInput(r *reportInput) (*figure.Input, error) {
	p, err := r.selected()
	if err != nil {
		return nil, err
	}
	in := &figure.Input{Profile: p, Report: r.report}
	if r.opt.before == "" {
		return in, nil
	}
	before, err := profile.ReadFile(r.opt.before)
	if err != nil {
		return nil, err
	}
	build := report.Options{Only: r.build.Only, Objects: r.build.Objects, Threads: r.build.Threads}
	if build.Shapes, err = shape.Find(before, &symbol.Table{}, nil); err != nil { // --shape is of the other run
		return nil, fmt.Errorf("--before %s: %w", r.opt.before, err)
	}
	rep, err := report.Build(before, build)
	if err != nil {
		return nil, fmt.Errorf("--before %s: %w", r.opt.before, err)
	}
	if before, err = access.Select(before, build.Selection()); err != nil {
		return nil, err
	}
	in.Before = &figure.Input{Profile: before, Report: rep}
	return in, nil
}

// plotsHelp is the part of report's help on --plots.
func plotsHelp() string {
	return `--plots DIR also writes figures for a paper, each as SVG and as PNG of 300 dpi, 8.5 or
17 cm wide, of what the profile has data for:

` + strings.TrimRight(figure.Index(), "\n")
}
