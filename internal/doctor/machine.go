package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"numaopt/internal/lab"
)

// Machine is the Prober of the machine numaopt runs on.
type Machine struct {
	FindLib func(name string) (string, error) // path of a part of numaopt
}

// Path looks in PATH, and where Debian keeps administrators' programs.
func (Machine) Path(name string) (string, error) {
	for _, n := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(n); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Version runs path --version.
func (Machine) Version(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	if err != nil {
		return "", fmt.Errorf("--version: %w", err)
	}
	return first, nil
}

// Lib asks FindLib.
func (m Machine) Lib(name string) (string, error) { return m.FindLib(name) }

// GuestKernel is the release that numaopt lab would boot.
func (m Machine) GuestKernel() (string, error) {
	dir := ""
	if plugin, err := m.FindLib("lab.so"); err == nil {
		dir = filepath.Join(filepath.Dir(plugin), "guest")
	}
	k, err := lab.FindKernel(dir)
	if err != nil {
		return "", err
	}
	return k.Release, nil
}
