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

// schema validates a tool's arguments. If the schema cannot be resolved, no
// validation is done and the server must check the arguments.
type schema struct {
	*jsonschema.Schema
	whole *jsonschema.Resolved // nil if there is no validation
	alone *jsonschema.Resolved // validates a single property; nil if not possible
}

func newSchema(t *mcp.Tool) *schema {
	b, err := json.Marshal(t.InputSchema)
	s := &schema{Schema: &jsonschema.Schema{}}
	if err != nil || !isBounded(b) || json.Unmarshal(b, s.Schema) != nil {
		return s
	}
	if s.whole, err = s.Resolve(nil); err != nil {
		s.whole = nil
		return s
	}
	// Properties may refer to definitions in the whole schema.
	one := &jsonschema.Schema{}
	if json.Unmarshal(b, one) == nil {
		one.Required, one.MinProperties, one.DependentRequired = nil, nil, nil
		if s.alone, err = one.Resolve(nil); err != nil {
			s.alone = nil
		}
	}
	return s
}

// check returns the problems with the arguments, at most one for each
// property.
func (s *schema) check(args json.RawMessage) []string {
	var in any = map[string]any{}
	if len(args) > 0 {
		if err := json.Unmarshal(args, &in); err != nil {
			return []string{"not valid JSON: " + err.Error()}
		}
	}
	values, ok := in.(map[string]any)
	if !ok {
		return []string{"not a JSON object"}
	}
	if s.whole == nil {
		return nil
	}
	fault := s.whole.Validate(values)
	if fault == nil {
		return nil
	}
	var problems []string
	for _, name := range s.Required {
		if _, ok := values[name]; !ok {
			problems = append(problems, name+" is missing"+describeProperty(s.Schema, name, ""))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if s.alone == nil {
			break
		}
		if err := s.alone.Validate(map[string]any{name: values[name]}); err != nil {
			problems = append(problems, propertyProblem(s.Schema, name, err))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, innermostError(fault))
	}
	return problems
}

// convert converts values with a wrong type to the type in the schema, if the
// intended value is certain. Models write numbers and objects as strings. If
// the result does not match the schema, convert returns the arguments
// unchanged.
func (s *schema) convert(args json.RawMessage) json.RawMessage {
	if len(s.check(args)) == 0 {
		return args
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(args, &values) != nil {
		return args
	}
	for name, raw := range values {
		var text string
		want := s.Properties[name]
		if want == nil || json.Unmarshal(raw, &text) != nil || !slices.Contains([]string{"integer", "number", "boolean", "array", "object"}, want.Type) {
			continue
		}
		if text = strings.TrimSpace(text); json.Valid([]byte(text)) {
			values[name] = json.RawMessage(text)
		}
	}
	if fitted, err := json.Marshal(values); err == nil && len(s.check(fitted)) == 0 {
		return fitted
	}
	return args
}

func propertyProblem(schema *jsonschema.Schema, name string, err error) string {
	if _, ok := schema.Properties[name]; !ok && len(schema.PatternProperties) == 0 {
		known := slices.Sorted(maps.Keys(schema.Properties))
		return fmt.Sprintf("unknown argument %s; known arguments: %s", name, strings.Join(known, ", "))
	}
	said := strings.TrimPrefix(innermostError(err), "type: ")
	return name + ": " + said + describeProperty(schema, name, said)
}

// innermostError returns the innermost part of a validation error, without its
// path.
func innermostError(err error) string {
	msg := err.Error()
	if i := strings.LastIndex(msg, "validating /"); i >= 0 {
		msg = msg[i:]
		if _, rest, ok := strings.Cut(msg, ": "); ok {
			msg = rest
		}
	}
	return msg
}

// describeProperty returns the schema's description of a property, to help the
// caller. It omits the type if the error message already contains it.
func describeProperty(schema *jsonschema.Schema, name, said string) string {
	p := schema.Properties[name]
	if p == nil {
		return ""
	}
	var parts []string
	if p.Type != "" && !strings.HasSuffix(said, fmt.Sprintf("want %q", p.Type)) {
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
