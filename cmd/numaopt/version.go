package main

import "runtime/debug"

// release is set by scripts/build (-X main.release=…) from the tag.
var release = ""

// version is the release, or failing that the commit the binary was built from.
func version() string {
	if release != "" {
		return release
	}
	rev, dirty := "", ""
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch {
			case s.Key == "vcs.revision" && len(s.Value) >= 12:
				rev = s.Value[:12]
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "+"
			}
		}
	}
	if rev == "" {
		return "devel"
	}
	return "devel-" + rev + dirty
}
