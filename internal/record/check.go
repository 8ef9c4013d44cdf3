package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"numaopt/internal/symbol"
)

// ErrEmulator says that the emulator cannot be used here; the text has the cure.
var ErrEmulator = errors.New("the emulator cannot be used")

// Emulator is a QEMU that the plugin fits.
type Emulator struct {
	Path    string // absolute
	Version string
}

var versionText = regexp.MustCompile(`version (\d+)\.(\d+)(\.\d+)?`)

// FindEmulator looks for qemu-x86_64 on PATH and checks that the plugin fits it:
// QEMU 6.2 to 8.x; 9.0 and later refuse plugins of API version 1.
func FindEmulator() (Emulator, error) {
	path, err := exec.LookPath("qemu-x86_64")
	if err != nil {
		return Emulator{}, fmt.Errorf("%w: qemu-x86_64 is not installed: apt-get install qemu-user", ErrEmulator)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return Emulator{}, fmt.Errorf("%w: %s --version: %v", ErrEmulator, path, err)
	}
	e := Emulator{Path: path}
	e.Version, err = fits(string(out))
	if err != nil {
		return Emulator{}, fmt.Errorf("%w: %s: %v", ErrEmulator, path, err)
	}
	e.Path, err = filepath.Abs(path)
	return e, err
}

// fits returns the version in the text of qemu-x86_64 --version, or why the
// plugin does not fit it.
func fits(text string) (string, error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%q names no version", strings.TrimSpace(text))
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	version := m[1] + "." + m[2] + m[3]
	if major < 6 || major == 6 && minor < 2 || major > 8 {
		return "", fmt.Errorf("QEMU %s does not load this plugin (API version 1): install QEMU 6.2 to 8.2, such as qemu-user 7.2 of Debian 12", version)
	}
	return version, nil
}

// Resolve finds the program as execvp does and checks that the emulator can run
// it, and the runtime be preloaded into it; see symbol.Describe.
func Resolve(name string) (string, error) {
	p, err := symbol.Describe(name)
	return p.Path, err
}

// unfold is the program that QEMU, which knows no #! lines, must be given to run
// argv, whose program is at path: the interpreters of a script come first, as
// the kernel's load_script puts them. pre: Resolve found nothing wrong.
func unfold(path string, argv []string) (program string, args []string, err error) {
	for {
		head := make([]byte, 256)
		f, err := os.Open(path)
		if err != nil {
			return "", nil, err
		}
		n, _ := f.ReadAt(head, 0)
		f.Close()
		if !bytes.HasPrefix(head[:n], []byte("#!")) {
			return path, argv, nil
		}
		line, _, _ := bytes.Cut(head[2:n], []byte("\n"))
		interpreter, option, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		front := []string{interpreter}
		if option = strings.TrimSpace(option); option != "" {
			front = append(front, option)
		}
		argv = append(append(front, path), argv[1:]...)
		path = interpreter
	}
}
