package lab

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wantedModules is what the guest needs of its kernel: a disk to write on, network
// and NFS to see the host's files, overlayfs to write to them without changing
// them. Debian's cloud kernel has the first two built in.
var wantedModules = []string{"nvme", "ext4", "virtio_pci", "virtio_net", "nfs", "nfsv3", "overlay"}

// loadOrder is the files of the wanted modules of the kernel in base
// (lib/modules/RELEASE) and of all they depend on, each behind its dependencies.
// What the kernel has built in is left out.
func loadOrder(base string) ([]string, error) {
	builtin, err := os.ReadFile(filepath.Join(base, "modules.builtin"))
	if err != nil {
		return nil, err
	}
	l := loader{files: map[string]string{}, builtin: map[string]bool{}, done: map[string]bool{}}
	for _, line := range strings.Fields(string(builtin)) {
		l.builtin[moduleName(line)] = true
	}
	err = filepath.WalkDir(filepath.Join(base, "kernel"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".ko") {
			l.files[moduleName(path)] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range wantedModules {
		if err := l.need(name); err != nil {
			return nil, err
		}
	}
	return l.order, nil
}

// moduleName is the module in a file: the kernel takes "-" for "_".
func moduleName(path string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".ko"), "-", "_")
}

type loader struct {
	files   map[string]string
	builtin map[string]bool
	done    map[string]bool
	order   []string
}

func (l *loader) need(name string) error {
	if l.done[name] || l.builtin[name] {
		return nil
	}
	l.done[name] = true
	path, ok := l.files[name]
	if !ok {
		return fmt.Errorf("the kernel has no module %s", name)
	}
	depends, err := dependencies(path)
	if err != nil {
		return err
	}
	for _, d := range depends {
		if err := l.need(d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	l.order = append(l.order, path)
	return nil
}

// dependencies reads a module's "depends" from its .modinfo.
func dependencies(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("%s: no .modinfo", path)
	}
	text, err := s.Data()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, item := range bytes.Split(text, []byte{0}) {
		if list, ok := strings.CutPrefix(string(item), "depends="); ok && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ","), nil
		}
	}
	return nil, nil
}
