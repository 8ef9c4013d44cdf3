package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plan.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a plan file as a JSON value.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	js, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(js))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSchemaAccepts holds every plan in testdata against the schema: what Read
// takes must validate.
func TestSchemaAccepts(t *testing.T) {
	s := compileSchema(t)
	files, err := filepath.Glob("testdata/*.plan.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans in testdata: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(bytes.NewReader(text)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if err := s.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestSchemaRejects(t *testing.T) {
	s := compileSchema(t)
	var b bytes.Buffer
	if err := Write(&b, whole()); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"policy: x-wise", "policy: y-wise"}, {"policy: x-wise", "policy: x-wise\n    colour: red"},
		{"kind: global", "kind: heap"}, {"kind: mapping", "kind: global"}, {"1*16000", "1x16000"},
		{"schedule: static-inverse", "schedule: backwards"}, {"schedule: nodes", "schedule: static-inverse"}, {"runtime: libgomp", "runtime: tbb"},
		{"numaopt-plan: 1", "numaopt-plan: 2"}, {"bytes: 64MiB", "bytes: big"}, {"  nodes: 4\n", ""},
	} {
		text := strings.Replace(b.String(), c[0], c[1], 1)
		if text == b.String() {
			t.Errorf("the plan has no %q", c[0])
		}
		if err := s.Validate(instance(t, []byte(text))); err == nil {
			t.Errorf("%q for %q still validates", c[1], c[0])
		}
	}
}

// TestSchemaIsWhole holds the fields of the schema against those of the types.
func TestSchemaIsWhole(t *testing.T) {
	type node struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var s struct {
		node
		Defs map[string]node `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &s); err != nil {
		t.Fatal(err)
	}
	sub := func(n node, name string) (c node) { json.Unmarshal(n.Properties[name], &c); return c }
	for _, c := range []struct {
		of  any
		has node
	}{
		{Plan{}, s.node}, {From{}, sub(s.node, "from")}, {Threads{}, sub(s.node, "threads")}, {Predict{}, s.Defs["predicted"]},
		{Entry{}, s.Defs["object"]}, {Module{}, s.Defs["module"]}, {Frame{}, s.Defs["frame"]},
		{Place{}, s.Defs["sourcePlace"]}, {Instance{}, sub(s.Defs["object"], "instance")}, {Distribution{}, s.Defs["place"]}, {Loop{}, s.Defs["loop"]},
	} {
		fields := reflect.TypeOf(c.of)
		n := 0
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("yaml"), ",")
			if name == "-" {
				continue
			}
			n++
			if _, ok := c.has.Properties[name]; !ok {
				t.Errorf("%v: the schema has no %s", fields, name)
			}
		}
		if n != len(c.has.Properties) {
			t.Errorf("%v has %d fields, the schema %d", fields, n, len(c.has.Properties))
		}
	}
	if want := fmt.Sprintf(`"const": %d}`, Version); !bytes.Contains(Schema, []byte(want)) {
		t.Errorf("the schema is not of version %d", Version)
	}
}
