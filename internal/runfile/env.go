package runfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Variable is the environment variable that names the run file.
const Variable = "NUMAOPT_RUN"

// Runtime is the file name of the preload library below lib/numaopt.
const Runtime = "libnumaopt.so"

// LibDir is the environment variable that names the directory of numaopt's own
// files where they are not beside the executable, as in tests.
const LibDir = "NUMAOPT_LIB"

// Lib returns the absolute path of a file that numaopt ships beside its
// executable, such as "libnumaopt.so" or "guest/init": lib/numaopt/NAME in the
// executable's own directory (a build folder), else in its parent (an
// installation, PREFIX/bin and PREFIX/lib).
func Lib(name string) (string, error) {
	if dir := os.Getenv(LibDir); dir != "" {
		return filepath.Abs(filepath.Join(dir, name))
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find numaopt's own files: %w", err)
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	return lib(filepath.Dir(exe), name)
}

// lib is Lib for an executable in dir.
func lib(dir, name string) (string, error) {
	places := []string{
		filepath.Join(dir, "lib", "numaopt", name),
		filepath.Join(dir, "..", "lib", "numaopt", name),
	}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is neither at %s nor at %s: run scripts/build, and keep lib/numaopt beside the executable or in its parent directory",
		name, places[0], places[1])
}

// Env returns environ with the runtime preloaded before whatever was preloaded
// already, and the run file named. lib and file are absolute paths. environ is
// not changed.
func Env(environ []string, lib, file string) ([]string, error) {
	if splits(lib) {
		var err error
		if lib, err = plainLink(lib); err != nil {
			return nil, err
		}
	}
	preload := lib
	out := make([]string, 0, len(environ)+2)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case Variable:
		case "LD_PRELOAD":
			preload = prepend(lib, value)
		default:
			out = append(out, kv)
		}
	}
	return append(out, "LD_PRELOAD="+preload, Variable+"="+file), nil
}

// Quiet returns environ with what makes waiting threads of OpenMP runtimes sleep
// instead of spin, and what of that was not set already. environ is not changed.
func Quiet(environ []string) (env, set []string) {
	env = slices.Clone(environ)
	for _, kv := range []string{"OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT=0"} {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			env, set = append(env, kv), append(set, kv)
		}
	}
	return env, set
}

// splits reports whether the dynamic linker would take path for several.
func splits(path string) bool { return strings.ContainsAny(path, " :\t\n") }

// prepend puts lib before the libraries of value that are not lib.
func prepend(lib, value string) string {
	all := []string{lib}
	for _, p := range strings.FieldsFunc(value, func(c rune) bool { return c == ' ' || c == ':' }) {
		if p != lib {
			all = append(all, p)
		}
	}
	return strings.Join(all, ":")
}
