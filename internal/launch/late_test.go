package launch

import (
	"errors"
	"os/exec"
	"path/filepath"
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
	var judged []string
	options := func(environ ...string) Options {
		opt := options(t, "4x2", "/bin/sh")
		opt.Environ = environ
		judged = nil
		opt.Permutable = func(path string, _ []string, _ uint64) error {
			judged = append(judged, path)
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
	refuse = errors.New("the thread number is stored")
	res = resolve(t, p, options("LD_LIBRARY_PATH="+dir))
	if len(res.Run.Loops) != 0 || !strings.Contains(text(res.Warnings), "the thread number is stored") {
		t.Errorf("refused: %+v\n%s", res.Run.Loops, text(res.Warnings))
	}
	p.Loops[0].Schedule = plan.Affine
	p.Loops[0].Offset = 0x99 // left to the runtime, which permutes nothing there
	if res = resolve(t, p, options()); len(res.Run.Loops) != 1 {
		t.Errorf("affine: %+v\n%s", res.Run.Loops, text(res.Warnings))
	}
}
