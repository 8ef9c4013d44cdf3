package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// Kernel is what boots in the guest: Debian's cloud kernel, unpacked and not
// installed.
type Kernel struct {
	Release string   // "6.1.0-56-cloud-amd64"
	Image   string   // path of vmlinuz
	Modules []string // paths, in load order
}

// ErrNoKernel says that no kernel for the guest was found; its message has the cure.
var ErrNoKernel = errors.New("no kernel for the guest")

// kernelPackage is the package whose dependency is the kernel of the day.
const kernelPackage = "linux-image-cloud-amd64"

// FindKernel looks for the guest's kernel: in $NUMAOPT_KERNEL (a directory in
// which Debian's kernel package was unpacked with dpkg -x), in guestDir (where
// numaopt was built or installed), in this user's cache, and on the running
// system. It returns ErrNoKernel where there is none.
func FindKernel(guestDir string) (Kernel, error) {
	if dir := os.Getenv("NUMAOPT_KERNEL"); dir != "" {
		k, err := kernelIn(dir, "*")
		if err != nil {
			return Kernel{}, fmt.Errorf("NUMAOPT_KERNEL=%s: %w: it must be a directory into which dpkg -x unpacked the package that %s depends on; unset it to have one downloaded", dir, err, kernelPackage)
		}
		return k, nil
	}
	for _, dir := range []string{filepath.Join(guestDir, "kernel"), kernelCache()} {
		if k, err := kernelIn(dir, "*"); err == nil {
			return k, nil
		}
	}
	if k, err := kernelIn("/", "*-cloud-amd64"); err == nil {
		return k, nil
	}
	return Kernel{}, ErrNoKernel
}

// kernelCache is where FetchKernel leaves a user's kernel; empty where the user
// has no home.
func kernelCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "numaopt", "kernel")
}

// kernelIn finds the newest kernel below root whose release matches pattern.
func kernelIn(root, pattern string) (Kernel, error) {
	images, _ := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-"+pattern))
	sort.Slice(images, func(i, j int) bool { return naturalLess(images[j], images[i]) })
	err := ErrNoKernel
	for _, image := range images {
		var k Kernel
		if k, err = kernelOf(root, image); err == nil {
			return k, nil
		}
	}
	return Kernel{}, err
}

func kernelOf(root, image string) (Kernel, error) {
	f, err := os.Open(image)
	if err != nil {
		return Kernel{}, err
	}
	f.Close()
	k := Kernel{Release: strings.TrimPrefix(filepath.Base(image), "vmlinuz-"), Image: image}
	k.Modules, err = loadOrder(filepath.Join(root, "lib", "modules", k.Release))
	if err != nil {
		return Kernel{}, fmt.Errorf("%s: %w", image, err)
	}
	return k, nil
}

// naturalLess orders releases: digits by value, so that 6.1.0-9 is before 6.1.0-56.
func naturalLess(a, b string) bool {
	for a != "" && b != "" {
		na, ra := leadingNumber(a)
		nb, rb := leadingNumber(b)
		if na >= 0 && nb >= 0 {
			if na != nb {
				return na < nb
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

// leadingNumber is the number at the start of s, -1 where there is none, and the rest.
func leadingNumber(s string) (n int, rest string) {
	i := 0
	for i < len(s) && i < 9 && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		i++
	}
	if i == 0 {
		return -1, s
	}
	return n, s[i:]
}

// FetchKernel downloads Debian's kernel package with apt-get and unpacks it in
// this user's cache. Nothing is installed, no rights are needed.
func FetchKernel(ctx context.Context, guestDir string) (Kernel, error) {
	dir := kernelCache()
	if dir == "" {
		return Kernel{}, fmt.Errorf("%w, and no cache directory to put one into: set HOME or NUMAOPT_KERNEL", ErrNoKernel)
	}
	if err := fetchInto(ctx, dir); err != nil {
		return Kernel{}, fmt.Errorf("%w: %w; download and unpack one where there is a network: "+
			"apt-get download PACKAGE && dpkg -x PACKAGE*.deb DIR, PACKAGE being what %s depends on, and set NUMAOPT_KERNEL=DIR",
			ErrNoKernel, err, kernelPackage)
	}
	return FindKernel(guestDir)
}

func fetchInto(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".kernel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out, err := exec.CommandContext(ctx, "apt-cache", "depends", kernelPackage).Output()
	name := ""
	for _, line := range strings.Split(string(out), "\n") {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: linux-image-"); ok {
			name = "linux-image-" + p
		}
	}
	if err != nil || name == "" {
		return fmt.Errorf("apt knows no package %s (apt-get update may help)", kernelPackage)
	}
	get := exec.CommandContext(ctx, "apt-get", "-qq", "download", name)
	get.Dir = tmp
	if msg, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get download %s: %w: %s", name, err, lastLine(msg))
	}
	debs, _ := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if len(debs) != 1 {
		return fmt.Errorf("apt-get download %s left %d packages", name, len(debs))
	}
	unpacked := filepath.Join(tmp, "kernel")
	if msg, err := exec.CommandContext(ctx, "dpkg", "-x", debs[0], unpacked).CombinedOutput(); err != nil {
		return fmt.Errorf("dpkg -x %s: %w: %s", name, err, lastLine(msg))
	}
	os.RemoveAll(dir)
	return os.Rename(unpacked, dir)
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
