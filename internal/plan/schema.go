package plan

import _ "embed"

// Schema is the JSON schema (draft 2020-12) of a plan, for editors and other
// tools; Read alone decides what is a plan.
//
//go:embed plan.schema.json
var Schema []byte
