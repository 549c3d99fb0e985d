package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxFields is the maximum number of fields in a form.
const maxFields = 50

// Field is one input of a form, with its label and valid values.
type Field struct {
	Name     string // name of the field in the answer
	Title    string // label, one line
	Help     string // explanation, one line
	Required bool
	Secret   bool     // whether input is hidden
	Several  bool     // whether several choices can be selected
	Choices  []string // allowed values; empty means any text
	Default  string   // value for an empty line; "" means none

	kind   string
	values []any // values that correspond to Choices
}

// Pick returns a field whose choices and values are the given words.
func Pick(title string, words ...string) Field {
	f := Field{Title: title, Required: true}
	for _, w := range words {
		f.choice(w, w)
	}
	return f
}

// property holds the supported keywords of a property in a JSON schema.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Format      string          `json:"format"`
	WriteOnly   bool            `json:"writeOnly"`
	Enum        []any           `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []titledConst   `json:"oneOf"`
	AnyOf       []titledConst   `json:"anyOf"`
	Default     json.RawMessage `json:"default"`
	Items       *property       `json:"items"`
}

type titledConst struct {
	Const any    `json:"const"`
	Title string `json:"title"`
}

// Fields returns the form fields for a JSON schema, sorted by name. If there
// are none, the form asks for yes or no.
func Fields(schema json.RawMessage) ([]Field, error) {
	if len(schema) == 0 || string(schema) == "null" {
		return nil, nil
	}
	var s struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("read form schema: %w", err)
	}
	if len(s.Properties) > maxFields {
		return nil, fmt.Errorf("too many form fields (%d, limit %d)", len(s.Properties), maxFields)
	}
	var out []Field
	for name, p := range s.Properties {
		out = append(out, p.field(name, slices.Contains(s.Required, name)))
	}
	slices.SortFunc(out, func(x, y Field) int { return cmp.Compare(x.Name, y.Name) })
	return out, nil
}

func (p *property) field(name string, required bool) Field {
	f := Field{Name: name, Title: Plain(cmp.Or(p.Title, name)), Help: Plain(p.Description), Required: required, kind: p.Type}
	f.Secret = p.Format == "password" || p.WriteOnly
	of := p
	if p.Type == "array" && p.Items != nil {
		f.Several, of = true, p.Items
	}
	for i, v := range of.Enum {
		title := fmt.Sprint(v)
		if i < len(of.EnumNames) {
			title = of.EnumNames[i]
		}
		f.choice(v, title)
	}
	for _, c := range append(of.OneOf, of.AnyOf...) {
		f.choice(c.Const, cmp.Or(c.Title, fmt.Sprint(c.Const)))
	}
	if p.Type == "boolean" {
		f.choice(true, "yes")
		f.choice(false, "no")
	}
	f.Default = f.setDefault(p.Default)
	return f
}

func (f *Field) choice(value any, title string) {
	f.values, f.Choices = append(f.values, value), append(f.Choices, Plain(title))
}

func (f *Field) setDefault(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || f.Several || json.Unmarshal(raw, &v) != nil || v == nil {
		return ""
	}
	for i, c := range f.values {
		if fmt.Sprint(c) == fmt.Sprint(v) {
			return f.Choices[i]
		}
	}
	if len(f.values) > 0 {
		return ""
	}
	return Plain(fmt.Sprint(v))
}

// Value parses a line of input. It accepts a unique prefix of a choice. ok is
// false if the line is invalid.
func (f *Field) Value(line string) (value any, ok bool) {
	switch {
	case f.Several:
		return f.parseSeveral(line)
	case len(f.Choices) > 0:
		i := matchChoice(line, f.Choices)
		if i < 0 {
			return nil, false
		}
		return f.values[i], true
	}
	switch f.kind {
	case "integer":
		n, err := strconv.ParseInt(line, 10, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(line, 64)
		return n, err == nil
	}
	return line, true
}

func (f *Field) parseSeveral(line string) (any, bool) {
	out := []any{}
	for part := range strings.SplitSeq(line, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if len(f.Choices) == 0 {
			out = append(out, part)
			continue
		}
		i := matchChoice(part, f.Choices)
		if i < 0 {
			return nil, false
		}
		out = append(out, f.values[i])
	}
	return out, true
}

// Expected describes valid input for the field.
func (f *Field) Expected() string {
	switch {
	case f.Several && len(f.Choices) > 0:
		return "some of " + strings.Join(f.Choices, ", ") + ", separated by commas"
	case f.Several:
		return "a list separated by commas"
	case len(f.Choices) > 0:
		return strings.Join(f.Choices, " or ")
	case f.kind == "integer":
		return "a whole number"
	case f.kind == "number":
		return "a number"
	}
	return "text"
}

// matchChoice returns the index of the choice that equals line, or that has
// line as a unique prefix. It returns -1 if there is none.
func matchChoice(line string, choices []string) int {
	if i := slices.Index(choices, line); i >= 0 {
		return i
	}
	found := -1
	for i, c := range choices {
		if line != "" && strings.HasPrefix(strings.ToLower(c), strings.ToLower(line)) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}
