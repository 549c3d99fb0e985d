package skilltext

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// MaxSchemaBytes is the maximum total size, in bytes, of the schemas in a list
// of tools if the model did not request the schemas. It corresponds to about
// 2,000 tokens.
const MaxSchemaBytes = 8000

// Tool is an entry in a list of tools for a model.
type Tool struct {
	Name          string
	Description   string
	InputSchema   json.RawMessage // nil if the list omits it
	Server        string
	State         string // server state, as in package tools
	NeedsApproval bool
	ReadOnly      bool // whether read_tool calls it
}

// WriteTools writes a list of tools, one per line. If schemas is set, the
// schema of each tool is on the next line.
func WriteTools(b *strings.Builder, all []Tool, schemas bool) {
	for _, t := range all {
		fmt.Fprintf(b, "- %s: %s", t.Name, untrusted.New(t.Description).ForModel())
		if t.State == "DEGRADED" || t.State == "DEAD" {
			fmt.Fprintf(b, " [server %s is %s]", t.Server, t.State)
		}
		if t.NeedsApproval {
			b.WriteString(" [needs approval]")
		}
		if t.ReadOnly {
			b.WriteString(" [read_tool]")
		}
		b.WriteByte('\n')
		if schemas && len(t.InputSchema) > 0 {
			fmt.Fprintf(b, "  arguments: %s\n", t.InputSchema)
		}
	}
}
