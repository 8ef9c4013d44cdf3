package report

import (
	_ "embed"
	"encoding/json"
	"io"
)

// Schema is the JSON schema that WriteJSON keeps to.
//
//go:embed report.schema.json
var Schema string

// WriteJSON writes r as one JSON document.
func WriteJSON(w io.Writer, r *Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
