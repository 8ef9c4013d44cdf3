package main

import (
	"io"

	"numaopt/internal/profile"
	"numaopt/internal/timeline"
)

// exported is a format of report that write writes of the selected part of the profile.
func exported(write func(io.Writer, *profile.Profile) error) func(io.Writer, *reportInput) error {
	return func(w io.Writer, r *reportInput) error {
		p, err := r.selected()
		if err != nil {
			return err
		}
		return write(w, p)
	}
}

func writeTrace(w io.Writer, p *profile.Profile) error {
	return timeline.Trace(w, p, timeline.DefaultTraceOptions())
}
