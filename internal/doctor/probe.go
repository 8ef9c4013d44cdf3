package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// QEMU whose plugin interface the plugins fit: version 1, which QEMU speaks from
// 4.2 on (with the callbacks used here from 6.0) and refuses from 9.0 on. 7.2 is
// what numaopt is tested with.
const (
	firstQEMU  = 6
	beyondQEMU = 9
	testedQEMU = "7.2"
)

// FitsQEMU says whether numaopt's plugins fit a QEMU that gives this version line,
// "qemu-x86_64 version 7.2.22 (Debian …)". A nil error with tested false is a QEMU
// that should do.
func FitsQEMU(line string) (tested bool, err error) {
	m := regexp.MustCompile(`version (\d+)\.(\d+)`).FindStringSubmatch(line)
	if m == nil {
		return false, fmt.Errorf("%q does not tell a version", line)
	}
	major, err := strconv.Atoi(m[1])
	if err != nil || major < firstQEMU || major >= beyondQEMU {
		return false, fmt.Errorf("version %s.%s: the plugins fit %d.0 up to, not including, %d.0", m[1], m[2], firstQEMU, beyondQEMU)
	}
	return m[1]+"."+m[2] == testedQEMU, nil
}

func emulators(ctx context.Context, p Prober) []Finding {
	var out []Finding
	for _, e := range []struct{ name, program, pkg, what string }{
		{"qemu-user", "qemu-x86_64", "qemu-user", "profile by emulation"},
		{"qemu-system", "qemu-system-x86_64", "qemu-system-x86", "lab"},
	} {
		f := Finding{Name: e.name, State: Missing, Fix: "apt-get install " + e.pkg}
		path, err := p.Path(e.program)
		if err != nil {
			f.Text = e.program + " is not installed: no " + e.what
			out = append(out, f)
			continue
		}
		line, err := p.Version(ctx, path)
		tested := false
		if err == nil {
			tested, err = FitsQEMU(line)
		}
		switch {
		case err != nil:
			f.Text = fmt.Sprintf("%s: %v", path, err)
			f.Fix = fmt.Sprintf("put a QEMU %s, as in Debian 12, first in PATH", testedQEMU)
		case tested:
			f = Finding{e.name, OK, line, ""}
		default:
			f = Finding{e.name, Note, line + "; tested is " + testedQEMU, ""}
		}
		out = append(out, f)
	}
	return append(out, mke2fs(p))
}

// mke2fs makes the guest's scratch disk.
func mke2fs(p Prober) Finding {
	path, err := p.Path("mke2fs")
	if err != nil {
		return Finding{"e2fsprogs", Missing, "mke2fs is not installed: no lab", "apt-get install e2fsprogs"}
	}
	return Finding{"e2fsprogs", OK, path, ""}
}

// parts are numaopt's own: what scripts/build puts beside it.
func parts(p Prober) Finding {
	var lacking []string
	where := ""
	for _, name := range []string{"libnumaopt.so", "emulate.so", "lab.so"} {
		path, err := p.Lib(name)
		if err != nil {
			lacking = append(lacking, name)
			continue
		}
		where = strings.TrimSuffix(path, "/"+name)
	}
	if len(lacking) > 0 {
		return Finding{"parts", Missing, "not found beside numaopt: " + strings.Join(lacking, ", "), "scripts/build, and move build/lib along with build/numaopt"}
	}
	return Finding{"parts", OK, "runtime and plugins in " + where, ""}
}

func guestKernel(p Prober) Finding {
	release, err := p.GuestKernel()
	if err != nil {
		return Finding{"guest kernel", Missing, err.Error(), "scripts/setup, which unpacks Debian's cloud kernel; or set NUMAOPT_KERNEL to where you unpacked it"}
	}
	return Finding{"guest kernel", OK, release, ""}
}

// memoryPolicy tells a container's refusal (EPERM) from a kernel without NUMA
// (ENOSYS).
func memoryPolicy(p Prober, h host) Finding {
	const name = "memory policy"
	err := p.MemoryPolicy()
	switch {
	case err == nil:
		return Finding{name, OK, "mbind and move_pages work", ""}
	case errors.Is(err, syscall.ENOSYS):
		return Finding{name, Missing, fmt.Sprintf("%v: this kernel has no NUMA policies", err), "boot a kernel with CONFIG_NUMA, or use numaopt lab"}
	case errors.Is(err, syscall.EPERM):
		f := Finding{name, Missing, err.Error() + ": not allowed here", "run as a user that may call mbind"}
		if h.seccomp() {
			f.Text = err.Error() + ": the container's seccomp filter forbids it"
			f.Fix = "docker run --cap-add SYS_NICE … (podman and Kubernetes: the capability SYS_NICE)"
		}
		return f
	}
	return Finding{name, Missing, err.Error(), "see numaopt lab"}
}

// seccomp reports whether this process runs under a filter.
func (h host) seccomp() bool {
	b, err := readAll(h.root, "proc/self/status")
	return err == nil && strings.Contains(b, "\nSeccomp:\t2")
}
