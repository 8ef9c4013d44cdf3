package main

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// screen is a terminal that remembers.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// wait waits until all of words have been on the screen.
func (s *screen) wait(t *testing.T, words ...string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		missing := ""
		for _, w := range words {
			if !strings.Contains(s.String(), w) {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %q in %q", missing, s.String())
		}
	}
}

func TestProgress(t *testing.T) {
	var s screen
	p := startProgress(&s, "reading x.nprof", time.Millisecond)
	s.wait(t, "reading x.nprof")
	p.describe("sorting")
	p.show(10, 100)
	s.wait(t, "sorting", "10%")
	p.show(60, 100)
	s.wait(t, "60%", "s:", "]") // [elapsed:left]
	p.end()
	p = startProgress(&s, "quick work", time.Hour)
	p.end()
	if strings.Contains(s.String(), "quick work") {
		t.Errorf("what takes no time is shown: %q", s.String())
	}
	if p := newProgress(&s, "to a file"); p != nil {
		t.Error("progress is shown where there is no terminal")
	}
	var none *progress
	none.describe("x")
	none.show(1, 2)
	none.end()
}

func TestColored(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0) // both ends of a terminal
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Close()
	t.Setenv("TERM", "xterm")
	if !colored(pty, "auto") || colored(pty, "never") || colored(&screen{}, "auto") || !colored(&screen{}, "always") {
		t.Error("auto is a terminal, never is never, always is always")
	}
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(name, func(t *testing.T) {
			if t.Setenv(name, value); colored(pty, "auto") {
				t.Error("colors")
			}
		})
	}
}
