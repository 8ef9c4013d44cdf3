package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"numaopt/internal/export"
	"numaopt/internal/profile"
)

func TestExport(t *testing.T) {
	p := serialInit()
	path := nprof(t, p)
	code, out, errs := numaopt("report", path, "--format", "csv")
	lines, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || errs != "" || err != nil || len(lines) != len(p.Rows)+1 {
		t.Errorf("csv: exit status %d, stderr %q, %v, %d lines", code, errs, err, len(lines))
	}
	_, out, _ = numaopt("report", path, "--format", "csv", "--only", "work")
	if lines, _ := csv.NewReader(strings.NewReader(out)).ReadAll(); len(lines) != ofWork(p)+1 {
		t.Errorf("csv --only: %d lines", len(lines))
	}
	_, out, _ = numaopt("report", path, "--format", "parquet")
	if rows, err := parquet.Read[export.Record](strings.NewReader(out), int64(len(out))); err != nil || len(rows) != len(p.Rows) {
		t.Errorf("parquet: %d rows, %v", len(rows), err)
	}
	file := filepath.Join(t.TempDir(), "x.pprof")
	if code, out, errs = numaopt("report", path, "--format", "pprof", "-o", file); code != 0 || out != "" || errs != "" {
		t.Errorf("pprof: exit status %d, stdout %q, stderr %q", code, out, errs)
	}
	if text, err := os.ReadFile(file); err != nil {
		t.Error(err)
	} else if _, err := pprof.ParseData(text); err != nil {
		t.Error(err)
	}
}

// ofWork is how many rows of p are of the loop work.
func ofWork(p *profile.Profile) (n int) {
	for i := range p.Rows {
		if p.Regions[p.Rows[i].Region].Function == "work" {
			n++
		}
	}
	return n
}

func TestExportRefused(t *testing.T) {
	path := nprof(t, serialInit())
	for _, format := range []string{"csv", "parquet", "pprof"} {
		if code, _, errs := numaopt("report", path, "--format", format, "--only", "nothing"); code != 2 || !strings.Contains(errs, "work.c:20 (work)") {
			t.Errorf("%s: exit status %d, stderr %q", format, code, errs)
		}
		if code, _, errs := numaopt("report", path, "--format", format, "-o", "/proc/nothing/x"); code != 2 || !strings.Contains(errs, "/proc/nothing/x") {
			t.Errorf("%s: exit status %d, stderr %q", format, code, errs)
		}
	}
}

// TestExportTerminal: binary data does not reach a terminal; text does.
func TestExportTerminal(t *testing.T) {
	path := nprof(t, serialInit())
	for format, want := range map[string]int{"csv": 0, "parquet": 2, "pprof": 2} {
		terminal := pty(t)
		var errs bytes.Buffer
		code := run(context.Background(), &stdio{in: strings.NewReader(""), out: terminal, err: &errs}, []string{"report", path, "--format", format})
		if code != want || want == 2 && !strings.Contains(errs.String(), "-o") {
			t.Errorf("%s: exit status %d, stderr %q", format, code, errs.String())
		}
	}
}

// pty is a terminal whose other end reads all.
func pty(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 4096)
		for {
			if _, err := master.Read(b); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { slave.Close(); master.Close() })
	return slave
}
