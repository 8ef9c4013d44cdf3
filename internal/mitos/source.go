package mitos

import (
	"regexp"
	"strings"

	"numaopt/internal/perfdata"
)

// words finds what a text says of an access, in whatever spelling: "Remote RAM (1 hop)",
// "Remote_RAM_1_Hop", "OP LOAD|LVL L3 hit|SNP HitM". The first that fits a group counts.
var words = []struct {
	group int
	text  *regexp.Regexp
	bits  perfdata.DataSrc
}{
	{level, regexp.MustCompile(`remote.*cache.*2`), perfdata.LevelRemCache2 << 5},
	{level, regexp.MustCompile(`remote.*cache`), perfdata.LevelRemCache1 << 5},
	{level, regexp.MustCompile(`remote.*ram.*2`), perfdata.LevelRemRAM2 << 5},
	{level, regexp.MustCompile(`remote.*ram`), perfdata.LevelRemRAM1 << 5},
	{level, regexp.MustCompile(`ram`), perfdata.LevelLocalRAM << 5},
	{level, regexp.MustCompile(`l1\b`), perfdata.LevelL1 << 5},
	{level, regexp.MustCompile(`lfb|fill buffer`), perfdata.LevelLFB << 5},
	{level, regexp.MustCompile(`l2\b`), perfdata.LevelL2 << 5},
	{level, regexp.MustCompile(`l3\b|llc`), perfdata.LevelL3 << 5},
	{level, regexp.MustCompile(`uncached`), perfdata.LevelUncached << 5},
	{level, regexp.MustCompile(`i.?o\b`), perfdata.LevelIO << 5},
	{hit, regexp.MustCompile(`miss`), perfdata.LevelMiss << 5},
	{hit, regexp.MustCompile(`hit\b`), perfdata.LevelHit << 5},
	{op, regexp.MustCompile(`store`), perfdata.OpStore},
	{op, regexp.MustCompile(`load`), perfdata.OpLoad},
	{snoop, regexp.MustCompile(`hitm|hit modified`), perfdata.SnoopHITM << 19},
}

const (
	level = iota
	hit
	op
	snoop
)

// Source is what a text says of where an access was served.
func Source(text string) perfdata.DataSrc {
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(strings.ReplaceAll(text, "_", " ")), "|") {
		if part = strings.TrimSpace(part); !strings.HasPrefix(part, "tlb") {
			parts = append(parts, part)
		}
	}
	var out perfdata.DataSrc
	found := [4]bool{}
	for _, w := range words {
		for _, part := range parts {
			if w.group != snoop && strings.HasPrefix(part, "sn") {
				continue // a snoop's hit is not the level's
			}
			if !found[w.group] && w.text.MatchString(part) {
				found[w.group], out = true, out|w.bits
			}
		}
	}
	return out
}
