package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
)

// recorded are the files that tell what a machine is like: all that Examine and
// topo.Read look at. Nothing of the user's is among them.
var recorded = []string{
	"sys/devices/system/cpu/*line", "sys/devices/system/cpu/possible", "sys/devices/system/cpu/present",
	"sys/devices/system/cpu/cpu*/topology/*",
	"sys/devices/system/node/online", "sys/devices/system/node/possible", "sys/devices/system/node/has_*",
	"sys/devices/system/node/node*/cpulist", "sys/devices/system/node/node*/cpumap",
	"sys/devices/system/node/node*/distance", "sys/devices/system/node/node*/meminfo",
	"sys/devices/system/node/node*/hugepages/*/nr_hugepages", "sys/devices/system/node/node*/access0/initiators/*",
	"sys/devices/system/cpu/cpu*/cache/index*/size", "sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list",
	"sys/bus/event_source/devices/*/type", "sys/bus/event_source/devices/*/events/mem-*",
	"sys/bus/event_source/devices/*/format/*", "sys/bus/event_source/devices/*/caps/*", "proc/sys/kernel/perf_event_max_sample_rate",
	"sys/kernel/mm/transparent_hugepage/enabled", "sys/kernel/mm/transparent_hugepage/defrag",
	"proc/sys/kernel/ostype", "proc/sys/kernel/osrelease", "proc/sys/kernel/perf_event_paranoid",
	"proc/sys/kernel/numa_balancing", "proc/sys/vm/max_map_count", "proc/sys/vm/zone_reclaim_mode",
	"proc/cpuinfo", "proc/meminfo", "proc/self/status",
}

// Save copies the files of root that describe the machine to dir, so that it can
// be examined elsewhere; a file that cannot be read is left out. It returns how
// many were copied.
func Save(root fs.FS, dir string) (files int, err error) {
	for _, pattern := range recorded {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			return files, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(root, name)
			if err != nil {
				continue
			}
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return files, err
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return files, err
			}
			files++
		}
	}
	return files, nil
}

func readAll(root fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(root, name)
	return string(b), err
}
