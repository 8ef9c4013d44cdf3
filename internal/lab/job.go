package lab

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// guestRun is one run as the guest's init is told of it; runtime-c/guest/job.h.
type guestRun struct {
	name       string
	exe        string // absolute path
	args       []string
	env        []string
	interleave bool
	deaf       string // why the program cannot say when it starts; exec is its start then
	keep       bool
	summary    string // path, empty for none
	selfTest   string // instead of a program
}

// job is what the guest's init is told.
type job struct {
	nodes, cpus int // cpus per node
	cwd         string
	dir         string // numaopt's directory for this lab
	stdin       string // path
	runs        []guestRun
}

// encode writes the job as NUL-ended "key=value" strings, with the identity,
// limits and mask of this process, which are the program's in the guest.
func (j *job) encode() ([]byte, error) {
	var b bytes.Buffer
	var bad error
	put := func(key, value string) {
		if strings.IndexByte(value, 0) >= 0 {
			bad = fmt.Errorf("%s %q: a NUL byte cannot be passed to a program", key, value)
		}
		fmt.Fprintf(&b, "%s=%s\x00", key, value)
	}
	num := func(key string, v int) { put(key, fmt.Sprint(v)) }
	flag := func(key string, v bool) {
		if v {
			num(key, 1)
		}
	}
	num("nodes", j.nodes)
	num("cpus", j.cpus)
	num("uid", os.Getuid())
	num("gid", os.Getgid())
	groups, _ := os.Getgroups()
	for _, g := range groups {
		num("group", g)
	}
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	put("umask", fmt.Sprintf("%o", mask))
	host, _ := os.Hostname()
	put("host", host)
	put("cwd", j.cwd)
	put("dir", j.dir)
	put("stdin", j.stdin)
	for _, r := range limits {
		var l syscall.Rlimit
		if syscall.Getrlimit(r, &l) == nil {
			put("rlimit", fmt.Sprintf("%d %d %d", r, l.Cur, l.Max))
		}
	}
	for _, r := range j.runs {
		put("run", r.name)
		put("exe", r.exe)
		for _, a := range r.args {
			put("arg", a)
		}
		for _, e := range r.env {
			put("env", e)
		}
		flag("interleave", r.interleave)
		flag("mark-exec", r.deaf != "")
		flag("keep", r.keep)
		if r.summary != "" {
			put("summary", r.summary)
		}
		if r.selfTest != "" {
			put("selftest", r.selfTest)
		}
	}
	return b.Bytes(), bad
}

// limits are the resource limits that a program can feel: CPU time is not among
// them, the guest being slower by far.
var limits = []int{
	syscall.RLIMIT_STACK, syscall.RLIMIT_DATA, syscall.RLIMIT_AS, syscall.RLIMIT_CORE,
	syscall.RLIMIT_FSIZE, syscall.RLIMIT_NOFILE, rlimitNproc, rlimitMemlock,
}

const (
	rlimitNproc   = 6
	rlimitMemlock = 8
)
