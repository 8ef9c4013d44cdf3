package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// colorModes are what --color takes.
var colorModes = []string{"auto", "always", "never"}

// colored reports whether what is written to w shall have colors: by default on a
// terminal that has them, unless the user asked for none (no-color.org).
func colored(w io.Writer, mode string) bool {
	if mode != "auto" {
		return mode == "always"
	}
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
