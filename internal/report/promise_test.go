package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// testdata/promise has reports and the schema of version 1 as they were first
// published. They are not regenerated: they are what programs out there were
// written for.
const promise = "testdata/promise"

// TestPromiseOldReports: the schema still describes every field of old reports, with
// the same type.
func TestPromiseOldReports(t *testing.T) {
	schema := strictSchema(t)
	for _, doc := range oldReports(t) {
		if err := schema.Validate(doc.value); err != nil {
			t.Errorf("%s: %v", doc.name, err)
		}
	}
}

// TestPromiseOldReaders: what is written today is what the published schema promised.
func TestPromiseOldReaders(t *testing.T) {
	schema := compile(t, openWords(t, publishedSchema(t)))
	for name, p := range profiles() {
		var out bytes.Buffer
		if err := WriteJSON(&out, build(t, p)); err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(&out)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPromiseKept: these tests do see a field that went, changed its type, or is no
// longer always there.
func TestPromiseKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(schema map[string]any)
	}{
		{"gone", func(s map[string]any) { delete(s["properties"].(map[string]any), "verdict") }},
		{"renamed", func(s map[string]any) {
			p := s["properties"].(map[string]any)
			p["imbalance_ratio"] = p["imbalance"]
			delete(p, "imbalance")
		}},
		{"another type", func(s map[string]any) {
			s["properties"].(map[string]any)["dram_accesses"] = map[string]any{"type": "string"}
		}},
	} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema))
		if err != nil {
			t.Fatal(err)
		}
		c.change(doc.(map[string]any))
		schema := compile(t, closed(doc))
		refused := 0
		for _, old := range oldReports(t) {
			if schema.Validate(old.value) != nil {
				refused++
			}
		}
		if refused == 0 {
			t.Errorf("%s: nobody notices", c.name)
		}
	}
	schema := compile(t, openWords(t, publishedSchema(t)))
	for _, field := range []string{"remote_dram_pct", "objects", "quality"} {
		doc := oldReports(t)[0].value.(map[string]any)
		delete(doc, field)
		if schema.Validate(doc) == nil {
			t.Errorf("a report without %s is as promised", field)
		}
	}
}

type oldReport struct {
	name  string
	value any
}

func oldReports(t *testing.T) (list []oldReport) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(promise, "*.json"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d old reports, %v", len(files), err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".schema.json") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, oldReport{f, doc})
	}
	return list
}

func publishedSchema(t *testing.T) any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(promise, "report.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// openWords leaves out which words a field takes: there may come more.
func openWords(t *testing.T, doc any) any {
	t.Helper()
	opened := 0
	walk(doc, func(x map[string]any) {
		if _, ok := x["enum"]; ok {
			delete(x, "enum")
			opened++
		}
	})
	if opened == 0 {
		t.Error("the schema has no field with words")
	}
	return doc
}
