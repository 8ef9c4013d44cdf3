package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// watcher follows the runs as the guest reports them.
type watcher struct {
	opt   Options
	runs  []guestRun
	run   int // the one under way, -1 before the first
	seen  []seen
	again string // why this is the second boot
	changes
}

// seen is what was heard of one run.
type seen struct {
	exit    exit
	ended   bool
	stdout  hash.Hash
	bytes   int64
	stderr  tail // of a run whose stderr is not passed on
	summary bytes.Buffer
}

// tail keeps the last bytes written to it.
type tail struct{ b []byte }

const tailBytes = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if extra := len(t.b) - tailBytes; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func newWatcher(opt Options, j *job) *watcher {
	w := &watcher{opt: opt, runs: j.runs, run: -1, seen: make([]seen, len(j.runs))}
	for i := range w.seen {
		w.seen[i].stdout = sha256.New()
	}
	// Where apply keeps its run files (runfile.Store): in the guest, of no use here.
	w.skip = filepath.Join(os.TempDir(), fmt.Sprintf("numaopt-%d", os.Geteuid()))
	return w
}

func (w *watcher) begin(run int) {
	if run < 0 || run >= len(w.seen) {
		return
	}
	w.run = run
	w.opt.Progress(fmt.Sprintf("run %d of %d: %s", run+1, len(w.seen), w.runs[run].name))
}

// now is the run under way; before the first one it is that.
func (w *watcher) now() *seen { return &w.seen[max(w.run, 0)] }

// where says what the guest was last known to do.
func (w *watcher) where() string {
	switch {
	case w.run < 0:
		return " before the first run"
	case w.last() && !w.seen[w.run].ended && w.seen[w.run].bytes > 0:
		return " in run " + w.runs[w.run].name + ", whose output has begun"
	}
	return " in run " + w.runs[w.run].name
}

func (w *watcher) last() bool { return w.run == len(w.seen)-1 }

func (w *watcher) output(stderr bool, data []byte) error {
	s := w.now()
	to := w.opt.Stdout
	if stderr {
		to = w.opt.Stderr
	} else {
		s.stdout.Write(data)
		s.bytes += int64(len(data))
	}
	if !w.last() {
		to = io.Discard
		if stderr {
			to = &s.stderr
		}
	}
	_, err := to.Write(data)
	return err
}

func (w *watcher) summary(data []byte) { w.now().summary.Write(data) }

func (w *watcher) ended(e exit) {
	s := w.now()
	s.exit, s.ended = e, true
	if !w.last() && e.status() != 0 {
		fmt.Fprintf(w.opt.Stderr, "%s", s.stderr.b)
	}
}

func (w *watcher) log(text string) { w.opt.Progress(text) }

// result puts together what the guest said and what the plugin counted.
func (w *watcher) result(opt Options, g *guest) (*Result, error) {
	w.drop(io.ErrUnexpectedEOF) // a file that never came to its end
	r := &Result{
		Command: opt.Command, Topology: fmt.Sprintf("%dx%d", g.nodes, g.cpus), Bind: opt.Bind, Kernel: g.kernel.Release,
		THP: opt.THP, Balancing: opt.Balancing, MemoryBytes: int64(g.nodeBytes()) * int64(g.nodes), Caches: opt.Caches,
		Only: opt.Only, Plan: opt.Plan, Window: window(opt, w.runs[0]), FilesWritten: w.written, FilesDeleted: w.deleted, FilesLost: w.failures,
		Warnings: []string{},
	}
	if w.again != "" {
		r.Warnings = append(r.Warnings, w.again)
	}
	if why := w.runs[0].deaf; why != "" {
		r.Warnings = append(r.Warnings, why+"; its threads are not bound")
	}
	for k := range w.seen {
		run, err := w.runResult(k, g)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", w.runs[k].name, err)
		}
		r.Runs = append(r.Runs, run)
	}
	for _, err := range w.failed {
		r.Warnings = append(r.Warnings, fmt.Sprintf("a file that the program wrote was not brought back: %v", err))
	}
	if more := w.failures - len(w.failed); more > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d more files were not brought back", more))
	}
	return r, nil
}

func window(opt Options, first guestRun) string {
	switch {
	case opt.SelfTest:
		return "the self-test's loads"
	case len(opt.Only) > 0:
		return "while a team of threads is in one of the named loops"
	case first.deaf != "":
		return "from exec to exit: the program cannot say when its main starts"
	}
	return "from the start of main to exit"
}

func (w *watcher) runResult(k int, g *guest) (RunResult, error) {
	s := &w.seen[k]
	r := RunResult{Name: w.runs[k].name}
	c, err := readCounts(fmt.Sprintf("%s.%d", g.countsPrefix(), k))
	if err != nil {
		return r, err
	}
	r.count(c, g.nodes, g.cpus)
	r.Status, r.Seconds, r.OOMKills = s.exit.status(), s.exit.took.Seconds(), s.exit.oomKills
	r.StdoutBytes = s.bytes
	r.StdoutSame = bytes.Equal(s.stdout.Sum(nil), w.seen[0].stdout.Sum(nil))
	r.runtime(s.summary.Bytes())
	if r.OOMKills > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the guest ran out of memory (%v); give it more with --memory", w.opt.Memory))
	}
	if r.Windows == 0 {
		r.Warnings = append(r.Warnings, "nothing was counted: the window never opened")
	}
	if why := unclosed(c.unclosed, w.opt, w.runs[k], r.Status); why != "" {
		r.Warnings = append(r.Warnings, why)
	}
	return r, nil
}

// unclosed says what it means that n processes or regions never closed the
// window: a process that was killed, or that the program left running, cannot.
func unclosed(n uint64, opt Options, run guestRun, status int) string {
	if status > 128 && n > 0 {
		n-- // the program itself: with it the run was over
	}
	switch {
	case n == 0 || run.deaf != "":
		return "" // a deaf program's window is open to the end of the run
	case len(opt.Only) > 0:
		return fmt.Sprintf("%d times a named loop was entered and not left: all that ran after it was counted, too", n)
	}
	return fmt.Sprintf("%d processes were killed or left running: what ran after them, with no other process's main under way, was counted, too", n)
}

// runtime fills in what the runtime's summary says, one JSON line a process;
// lines that are none are left alone.
func (r *RunResult) runtime(lines []byte) {
	var touched, onPlan int64
	for _, line := range bytes.Split(lines, []byte("\n")) {
		var one struct {
			Objects  []Object `json:"objects"`
			Threads  int      `json:"threads"`
			Warnings []string `json:"warnings"`
		}
		if json.Unmarshal(line, &one) != nil {
			continue
		}
		r.Threads = max(r.Threads, one.Threads)
		for _, w := range one.Warnings { // of many processes, often the same
			if !slices.Contains(r.Warnings, w) {
				r.Warnings = append(r.Warnings, w)
			}
		}
		for _, o := range one.Objects {
			o.OnPlanPct = percentOf(uint64(o.OnPlan), uint64(o.Touched))
			touched += o.Touched
			onPlan += o.OnPlan
			r.Objects = append(r.Objects, o)
		}
	}
	r.OnPlanPct = percentOf(uint64(onPlan), uint64(touched))
}
