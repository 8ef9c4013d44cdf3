package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "numaopt/internal/"

// testOnly are the packages that only tests import, from any row.
var testOnly = map[string]bool{"golden": true, "programs": true}

// TestLayers holds the imports of every package below internal to Rows.
func TestLayers(t *testing.T) {
	row := map[string]int{}
	for i, names := range Rows {
		for _, name := range names {
			row[name] = i
		}
	}
	files := token.NewFileSet()
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || !strings.Contains(path, string(filepath.Separator)) {
			return nil
		}
		pkg := top(filepath.ToSlash(filepath.Dir(path)))
		if _, ok := row[pkg]; !ok && !seen[pkg] {
			t.Errorf("%s has no row in layers.go", pkg)
		}
		seen[pkg] = true
		file, err := parser.ParseFile(files, path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range file.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			checkImport(t, row, path, pkg, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range row {
		if !seen[name] {
			t.Errorf("%s has a row but no source", name)
		}
	}
}

func checkImport(t *testing.T, row map[string]int, path, pkg, imported string) {
	t.Helper()
	if p, ok := strings.CutPrefix(imported, "github.com/spf13/"); ok {
		t.Errorf("%s imports %s: the command line belongs to cmd/numaopt", path, p)
	}
	rest, ours := strings.CutPrefix(imported, module)
	dep := top(rest)
	if !ours || dep == pkg {
		return
	}
	test := strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test")
	switch {
	case testOnly[dep]:
		if !test {
			t.Errorf("%s imports %s, which is for tests", path, dep)
		}
	case test: // a test may build its input with what lies above
	case row[dep] >= row[pkg]:
		t.Errorf("%s: %s (row %d) imports %s (row %d)", path, pkg, row[pkg], dep, row[dep])
	case pkg == "launch" && dep == "profile", pkg == "ingest" && dep == "plan":
		t.Errorf("%s: %s imports %s: the two ends never meet", path, pkg, dep)
	}
}

// top is the package directly below internal that path belongs to.
func top(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}
