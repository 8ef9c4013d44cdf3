package main

import (
	"io"

	"numaopt/internal/timeline"
)

// writeTrace is the report's format trace.
func writeTrace(w io.Writer, r *reportInput) error {
	p, err := r.selected()
	if err != nil {
		return err
	}
	return timeline.Trace(w, p, timeline.DefaultTraceOptions())
}
