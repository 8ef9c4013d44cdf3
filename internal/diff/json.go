package diff

import (
	_ "embed"
	"encoding/json"
	"io"
)

// Schema is the JSON schema that WriteJSON keeps to.
//
//go:embed diff.schema.json
var Schema string

// WriteJSON writes r as one JSON document.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
