package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"numaopt/internal/access"
	"numaopt/internal/export"
	"numaopt/internal/profile"
)

// exportFormats are the formats of report that are written from the profile alone, by
// name: whether they are binary. They may be large.
var exportFormats = map[string]bool{"csv": false, "parquet": true, "pprof": true, "trace": false}

// exported is a format of report that write writes.
func exported(write func(io.Writer, *profile.Profile) error) func(io.Writer, *reportInput) error {
	return func(w io.Writer, r *reportInput) error {
		q, err := access.Only(r.profile, r.opt.only)
		if err != nil {
			return err
		}
		return write(w, q)
	}
}

var (
	writeCSV     = exported(export.WriteCSV)
	writeParquet = exported(export.WriteParquet)
	writePprof   = exported(export.WritePprof)
)

// writeExport writes a format of exportFormats, to stdout while it is made.
func writeExport(std *stdio, r *reportInput) error {
	if out := r.opt.output; out != "" && out != "-" {
		return writeReport(std, r)
	}
	if exportFormats[r.opt.format] && isTerminal(std.out) {
		return usagef("--format %s is binary and stdout is a terminal: name a file by -o, or pipe it", r.opt.format)
	}
	w := bufio.NewWriterSize(std.out, 1<<16)
	if err := findFormat(r.opt.format).write(w, r); err != nil {
		return fmt.Errorf("report %s: %w", r.opt.profile, err)
	}
	return w.Flush()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
