package launch

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/plan"
)

// A loop of a file that the program loads while it runs is permuted only if that file
// is found and its code has been judged.
func TestLoadedLater(t *testing.T) {
	dir := t.TempDir()
	app := sweep(t, "gcc -g -O2 -fopenmp")
	p := loopPlan(t, app, "libgomp")
	plugin := filepath.Join(dir, "libplugin.so")
	if text, err := exec.Command("cp", app, plugin).CombinedOutput(); err != nil {
		t.Fatal(err, string(text))
	}
	for i := range p.Loops {
		p.Loops[i].Module.Name = filepath.Base(plugin)
	}
	refuse := error(nil)
	var judged, loaded []string
	options := func(environ ...string) Options {
		opt := options(t, "4x2", "/bin/sh")
		opt.Environ = environ
		judged = nil
		opt.Permutable = func(path string, with []string, _ uint64) error {
			judged, loaded = append(judged, path), with
			return refuse
		}
		return opt
	}
	res := resolve(t, p, options())
	if len(res.Run.Loops) != 0 || len(judged) > 0 || !strings.Contains(text(res.Warnings), "LD_LIBRARY_PATH") {
		t.Errorf("not found: %+v, judged %v\n%s", res.Run.Loops, judged, text(res.Warnings))
	}
	res = resolve(t, p, options("LD_LIBRARY_PATH=/nowhere:"+dir))
	if len(res.Run.Loops) != len(p.Loops) || len(judged) != len(p.Loops) || judged[0] != plugin {
		t.Errorf("found: %+v, judged %v\n%s", res.Run.Loops, judged, text(res.Warnings))
	}
	var read []string
	for _, m := range res.Run.Read {
		read = append(read, filepath.Base(m.Path))
	}
	if len(loaded) != 2 || loaded[1] != plugin || len(read) != 2 || read[1] != "libplugin.so" || res.Run.Read[1].BuildID != p.Loops[0].Module.BuildID || !slices.Contains(res.Run.Plain, "libc") {
		t.Errorf("judged with %v, the runtime knows of %+v", loaded, res.Run.Read)
	}
	refuse = errors.New("the thread number is stored")
	res = resolve(t, p, options("LD_LIBRARY_PATH="+dir))
	if len(res.Run.Loops) != 0 || !strings.Contains(text(res.Warnings), "the thread number is stored") {
		t.Errorf("refused: %+v\n%s", res.Run.Loops, text(res.Warnings))
	}
	if out, err := exec.Command("strip", plugin).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if res = resolve(t, p, options("LD_LIBRARY_PATH="+dir)); len(res.Run.Loops) != 0 || !strings.Contains(text(res.Warnings), "libplugin.so was stripped") {
		t.Errorf("stripped, and it may call the program: %+v\n%s", res.Run.Loops, text(res.Warnings))
	}
	p.Loops[0].Schedule = plan.Affine
	p.Loops[0].Offset = 0x99 // left to the runtime, which permutes nothing there
	if res = resolve(t, p, options()); len(res.Run.Loops) != 1 || len(res.Run.Read) != 0 {
		t.Errorf("affine: %+v\n%s", res.Run.Loops, text(res.Warnings))
	}
}
