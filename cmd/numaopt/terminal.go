package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// colorModes are what --color takes.
var colorModes = []string{"auto", "always", "never"}

// colored reports whether what is written to w shall have colors: by default on a
// terminal that has them, unless the user asked for none (no-color.org).
func colored(w io.Writer, mode string) bool {
	if mode != "auto" {
		return mode == "always"
	}
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// patience is how long a command works before it says how far it is.
const patience = 2 * time.Second

// progress shows on a terminal what takes long, with the rate and the time that is left
// where the end is known. A nil progress, where there is no terminal, shows nothing.
type progress struct {
	bar  *progressbar.ProgressBar
	stop chan struct{}
	over sync.WaitGroup
	once sync.Once

	mu        sync.Mutex
	what      string
	done, all int64 // all is 0 where the end is not known
}

// newProgress begins to show what is done, if w is a terminal.
func newProgress(w io.Writer, what string) *progress {
	if !isTerminal(w) {
		return nil
	}
	return startProgress(w, what, patience)
}

func startProgress(w io.Writer, what string, wait time.Duration) *progress {
	p := &progress{what: what, stop: make(chan struct{}), bar: progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(true), progressbar.OptionShowTotalBytes(true))}
	p.over.Go(func() { p.run(wait) })
	return p
}

// run shows the state several times a second, from wait on until end.
func (p *progress) run(wait time.Duration) {
	begin := time.After(wait)
	var tick <-chan time.Time
	for {
		select {
		case <-begin:
			ticker := time.NewTicker(200 * time.Millisecond)
			defer ticker.Stop()
			tick = ticker.C
			p.draw()
		case <-tick:
			p.draw()
		case <-p.stop:
			return
		}
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	what, done, all := p.what, p.done, p.all
	p.mu.Unlock()
	p.bar.Describe(what)
	if all <= 0 {
		p.bar.Add(1) //nolint:errcheck // a terminal that went away
		return
	}
	if p.bar.GetMax64() != all {
		p.bar.ChangeMax64(all)
	}
	p.bar.Set64(min(done, all)) //nolint:errcheck // as above
}

// describe says what is being done now.
func (p *progress) describe(what string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = what
}

// show says how much is done, of how much.
func (p *progress) show(done, all int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.all = done, all
}

// end leaves the terminal as if nothing had been shown.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		close(p.stop)
		p.over.Wait()
		p.bar.Clear() //nolint:errcheck // as above
	})
}
