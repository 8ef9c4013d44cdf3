package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/runfile"
)

// release is set by scripts/build (-X main.release=…) from the tag.
var release = ""

// buildInfo is what this numaopt was made from, and which files it speaks.
type buildInfo struct {
	Version string `json:"numaopt"`           // the release, else "devel-COMMIT", "+" for a changed tree
	Release string `json:"release,omitempty"` // empty between releases
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit, RFC 3339
	Changed bool   `json:"changed"`        // since the commit
	Go      string `json:"go"`
	System  string `json:"system"`
	// Runtime is the version of the file by which the runtime in the program is told what
	// to do: numaopt and libnumaopt.so must be of one.
	Runtime int `json:"runtime_abi"`
	Profile int `json:"profile_format"` // that is written; older ones are read
	Plan    int `json:"plan_format"`
}

func built() buildInfo {
	b := buildInfo{
		Version: "devel", Release: release, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Runtime: runfile.Version, Profile: profile.Version, Plan: plan.Version,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Changed = s.Value == "true"
			}
		}
	}
	switch {
	case release != "":
		b.Version = release
	case len(b.Commit) >= 12:
		b.Version = "devel-" + b.Commit[:12]
		if b.Changed {
			b.Version += "+"
		}
	}
	return b
}

// version is the release, or failing that the commit the binary was built from.
func version() string { return built().Version }

func newVersionCmd(std *stdio, run func(context.Context, bool) error) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "say what this numaopt was built from, and which files it reads and writes",
		Example: `  numaopt version --json | jq -r .commit`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

func runVersion(std *stdio, asJSON bool) error {
	b := built()
	if asJSON {
		e := json.NewEncoder(std.out)
		e.SetIndent("", "  ")
		return e.Encode(b)
	}
	commit := b.Commit
	if commit == "" {
		commit = "not known"
	}
	if b.Date != "" {
		commit += ", " + b.Date
	}
	_, err := fmt.Fprintf(std.out, "numaopt %s\ncommit %s\nbuilt by %s for %s\nruntime ABI %d, profile format %d (and older), plan format %d\n",
		b.Version, commit, b.Go, b.System, b.Runtime, b.Profile, b.Plan)
	return err
}
