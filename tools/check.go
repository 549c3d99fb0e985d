package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// checkArguments says everything that is wrong with the arguments of a tool, one
// problem a property. A schema that cannot be understood here, or leads to
// another place, is left to the server.
func checkArguments(t *mcp.Tool, args json.RawMessage) []string {
	var in any = map[string]any{}
	if len(args) > 0 {
		if err := json.Unmarshal(args, &in); err != nil {
			return []string{"they are no JSON: " + err.Error()}
		}
	}
	values, ok := in.(map[string]any)
	if !ok {
		return []string{"they have to be a JSON object"}
	}
	schema := schemaOf(t)
	if schema == nil {
		return nil
	}
	whole, err := schema.Resolve(nil)
	if err != nil || whole.Validate(values) == nil {
		return nil
	}
	var problems []string
	for _, name := range schema.Required {
		if _, ok := values[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s is missing%s", name, described(schema, name)))
		}
	}
	// Each property alone, by the schema of the whole, so that what it refers to is
	// there.
	one := *schema
	one.Required, one.MinProperties, one.DependentRequired = nil, nil, nil
	alone, err := one.Resolve(nil)
	if err != nil {
		return append(problems, whole.Validate(values).Error())
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := alone.Validate(map[string]any{name: values[name]}); err != nil {
			problems = append(problems, wrong(schema, name, err))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, plainError(whole.Validate(values)))
	}
	return problems
}

// schemaOf decodes the input schema of a tool; nil where it cannot be.
func schemaOf(t *mcp.Tool) *jsonschema.Schema {
	b, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil
	}
	var s jsonschema.Schema
	if json.Unmarshal(b, &s) != nil {
		return nil
	}
	return &s
}

func wrong(schema *jsonschema.Schema, name string, err error) string {
	if _, ok := schema.Properties[name]; !ok && len(schema.PatternProperties) == 0 {
		known := slices.Sorted(maps.Keys(schema.Properties))
		return fmt.Sprintf("%s is not an argument of it; there are %s", name, strings.Join(known, ", "))
	}
	return name + ": " + plainError(err) + described(schema, name)
}

// plainError is the innermost of what a validation says, without the way there.
func plainError(err error) string {
	msg := err.Error()
	if i := strings.LastIndex(msg, "validating /"); i >= 0 {
		msg = msg[i:]
		if _, rest, ok := strings.Cut(msg, ": "); ok {
			msg = rest
		}
	}
	return msg
}

// described is what the schema says of a property, to help the caller.
func described(schema *jsonschema.Schema, name string) string {
	p := schema.Properties[name]
	if p == nil {
		return ""
	}
	var parts []string
	if p.Type != "" {
		parts = append(parts, p.Type)
	}
	if len(p.Enum) > 0 {
		b, _ := json.Marshal(p.Enum)
		parts = append(parts, "one of "+string(b))
	}
	if d := strings.Join(strings.Fields(p.Description), " "); d != "" && len(d) <= 200 {
		parts = append(parts, d)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
