//lint:file-ignore SA1019 the suite still tests what is deprecated

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Questions to a client: to its user, to its model, and about its directories.

// form asks the user to fill in a form with the given schema.
func form(message, schema string) mcp.InputRequest {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)}
}

// field asks the user for the value of a single required property.
func field(message, name, kind string) mcp.InputRequest {
	return form(message, fmt.Sprintf(`{"type": "object", "properties": {%q: {"type": %q}}, "required": [%[1]q]}`, name, kind))
}

// completion requests a completion from the client's model.
func completion(prompt string, tokens int64) mcp.InputRequest {
	return &mcp.CreateMessageParams{MaxTokens: tokens,
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}}}
}

// roots requests the client's root directories.
func roots() mcp.InputRequest { return &mcp.ListRootsParams{} }

// missingCapability returns the capability that a question requires, as the data
// of an error, or nil if the client declared it.
func missingCapability(q mcp.InputRequest, caps *mcp.ClientCapabilities) map[string]any {
	if caps == nil {
		caps = &mcp.ClientCapabilities{}
	}
	capability, declared := "", false
	switch q.(type) {
	case *mcp.ElicitParams:
		capability, declared = "elicitation", caps.Elicitation != nil
	case *mcp.CreateMessageParams:
		capability, declared = "sampling", caps.Sampling != nil
	case *mcp.ListRootsParams:
		capability, declared = "roots", caps.RootsV2 != nil
	}
	if declared {
		return nil
	}
	return map[string]any{capability: map[string]any{}}
}

func keys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// answer formats the client's response. ok is false if it does not match the
// question.
func answer(q mcp.InputRequest, r mcp.InputResponse) (words string, ok bool) {
	switch q := q.(type) {
	case *mcp.ElicitParams:
		if r, is := r.(*mcp.ElicitResult); is {
			return formatForm(q, r)
		}
	case *mcp.CreateMessageParams:
		if r, is := r.(*mcp.CreateMessageWithToolsResult); is {
			return contentText(r.Content), true
		}
	case *mcp.ListRootsParams:
		if r, is := r.(*mcp.ListRootsResult); is {
			var uris []string
			for _, root := range r.Roots {
				uris = append(uris, root.URI)
			}
			return strings.Join(uris, ", "), true
		}
	}
	return "", false
}

// formatForm formats a form that matches its schema, or the user's refusal. It
// returns the value of a single field, or JSON for several fields.
func formatForm(q *mcp.ElicitParams, r *mcp.ElicitResult) (words string, ok bool) {
	if r.Action != "accept" {
		return r.Action, true
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(q.RequestedSchema.(json.RawMessage), &schema); err != nil {
		return "", false
	}
	resolved, err := schema.Resolve(nil)
	if err != nil || resolved.Validate(r.Content) != nil {
		return "", false
	}
	if len(r.Content) == 1 {
		return fmt.Sprint(r.Content[keys(r.Content)[0]]), true
	}
	js, err := json.Marshal(r.Content)
	return string(js), err == nil
}

func contentText(contents []mcp.Content) string {
	var texts []string
	for _, c := range contents {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}
