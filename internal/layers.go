// Package internal is the map of numaopt: its packages in rows, and the rule
// that a package imports only packages of lower rows.
//
// Read from the top of Rows to its end, the list is the algorithm: a run is
// recorded, ingested into a profile, attributed, classified, its patterns of use
// recognised, planned, what no plan reaches is advised to the programmer, and the
// plan is launched on a machine or in the lab; report and check read any stage.
// Everything turns on two plain contracts: profile (what was observed) and plan
// (what shall be done). Left of profile is only reading, between the two is only
// arithmetic, right of plan is only carrying out: launch never imports profile,
// ingest never imports plan.
package internal

// Rows lists the packages below internal from the lowest row to the highest.
// A package may import packages of earlier rows only; layers_test.go holds the
// source to it. A new package gets its row in the same change.
var Rows = [][]string{
	{"ident", "units", "stat", "golden", "safefile", "programs", "arena", "perfdata"},
	{"topo", "symbol", "runfile", "pattern", "eventlog", "mitos"},
	{"profile", "plan", "record", "bounds", "pmu", "probe"},
	{"sample", "counters"},
	{"ingest", "access", "latency", "launch"},
	{"shape", "annotate", "timeline", "heat"},
	{"classify", "lab", "export"},
	{"planner", "check", "doctor", "diff"},
	{"advice"},
	{"report"},
	{"html", "figure"},
}
