package record

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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

// Resolve finds the program as a shell would and checks that the emulator can
// run it: a dynamically linked x86-64 program, or a script whose interpreter is.
func Resolve(name string) (string, error) {
	path := name
	if !strings.Contains(name, "/") {
		found, err := exec.LookPath(name)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return "", fmt.Errorf("%s: no such program on PATH; a program in this directory is ./%s", name, name)
		}
		path = found
	}
	if err := checkProgram(path, 0); err != nil {
		return "", err
	}
	return path, nil
}

func checkProgram(path string, depth int) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", path)
	case err != nil:
		return err
	case st.IsDir():
		return fmt.Errorf("%s: is a directory, not a program", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s: is not a regular file", path)
	case st.Mode()&0o111 == 0:
		return fmt.Errorf("%s: is not executable: chmod +x", path)
	case st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0:
		return fmt.Errorf("%s: is set-user-id or set-group-id and would lose its rights in the emulator: profile a copy without the bit", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	if bytes.HasPrefix(head, []byte("#!")) {
		return checkScript(path, head, depth)
	}
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return fmt.Errorf("%s: is neither an ELF program nor a script that begins with #!", path)
	}
	return checkELF(path, f)
}

func checkScript(path string, head []byte, depth int) error {
	line, _, _ := bytes.Cut(head[2:], []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return fmt.Errorf("%s: names no interpreter after #!", path)
	}
	if depth > 4 {
		return fmt.Errorf("%s: too many interpreters of interpreters", path)
	}
	if err := checkProgram(words[0], depth+1); err != nil {
		return fmt.Errorf("%s: its interpreter: %w", path, err)
	}
	return nil
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

func checkELF(path string, f *os.File) error {
	e, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("%s: %v", path, err)
	}
	if e.Machine != elf.EM_X86_64 || e.Class != elf.ELFCLASS64 {
		return fmt.Errorf("%s: is a program for %s, numaopt emulates x86-64 alone", path, strings.TrimPrefix(e.Machine.String(), "EM_"))
	}
	if e.Type != elf.ET_EXEC && e.Type != elf.ET_DYN {
		return fmt.Errorf("%s: is not a program (%s)", path, e.Type)
	}
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, min(p.Filesz, 4096))
		if _, err := p.ReadAt(name, 0); err != nil {
			return fmt.Errorf("%s: its dynamic linker's name: %v", path, err)
		}
		linker := strings.TrimRight(string(name), "\x00")
		if _, err := os.Stat(linker); err != nil {
			return fmt.Errorf("%s: its dynamic linker %s is not installed", path, linker)
		}
		return nil
	}
	return fmt.Errorf("%s: is statically linked, so its allocations, threads and loops cannot be seen: link it dynamically (without -static)", path)
}
