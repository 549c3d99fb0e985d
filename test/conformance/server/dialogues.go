package main

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialogueTools returns the dialogues of the suite. The first dialogues, up to
// the enumerations, are for old protocol versions. The others use multi
// round-trip requests (SEP-2322).
func dialogueTools() []tool {
	var tools []tool
	for _, d := range []*dialogue{
		{name: "test_sampling", description: "Has the client's model answer a prompt.", schema: textArgument("prompt"),
			rounds: func(args map[string]string) []mcp.InputRequestMap {
				return []mcp.InputRequestMap{{"completion": completion(args["prompt"], 100)}}
			},
			say: sayKey("LLM response: %s", "completion")},
		{name: "test_elicitation", description: "Asks the user who they are.", schema: textArgument("message"),
			rounds: func(args map[string]string) []mcp.InputRequestMap {
				return []mcp.InputRequestMap{{"user": form(args["message"], userSchema)}}
			},
			say: sayKey("User response: %s", "user")},
		{name: "test_elicitation_sep1034_defaults", description: "Asks the user, with a default for each kind of value.",
			rounds: rounds(mcp.InputRequestMap{"form": form("Please check these values", defaultsSchema)}),
			say:    sayKey("Elicitation completed: %s", "form")},
		{name: "test_elicitation_sep1330_enums", description: "Asks the user, with a choice of each kind.",
			rounds: rounds(mcp.InputRequestMap{"form": form("Please choose", enumsSchema)}),
			say:    sayKey("Elicitation completed: %s", "form")},

		{name: "test_input_required_result_elicitation", description: "Asks the user for their name.",
			rounds: rounds(mcp.InputRequestMap{"user_name": field("What is your name?", "name", "string")}),
			say:    sayKey("Hello, %s!", "user_name")},
		{name: "test_streaming_elicitation", description: "Asks the user for their name, on a stream that may carry no requests.",
			rounds: rounds(mcp.InputRequestMap{"user_name": field("What is your name?", "name", "string")}),
			say:    sayKey("Hello, %s!", "user_name")},
		{name: "test_input_required_result_sampling", description: "Asks the client's model.",
			rounds: rounds(mcp.InputRequestMap{"capital_question": completion("What is the capital of France?", 100)}),
			say:    sayKey("The model says: %s", "capital_question")},
		{name: "test_missing_capability", description: "Asks the client's model, so that a client without one is refused.",
			rounds: rounds(mcp.InputRequestMap{"question": completion("Are you there?", 10)}),
			say:    sayKey("The model says: %s", "question")},
		{name: "test_input_required_result_list_roots", description: "Asks for the client's directories.",
			rounds: rounds(mcp.InputRequestMap{"client_roots": roots()}),
			say:    sayKey("The client works in %s", "client_roots")},
		{name: "test_input_required_result_request_state", description: "Asks the user to confirm, and knows its own question again.", signed: true,
			rounds: rounds(mcp.InputRequestMap{"confirm": field("Please confirm", "ok", "boolean")}),
			say:    sayKey("state-ok, confirmed: %s", "confirm")},
		{name: "test_input_required_result_tampered_state", description: "Asks the user to confirm, and refuses a changed state.", signed: true,
			rounds: rounds(mcp.InputRequestMap{"confirm": field("Please confirm", "ok", "boolean")}),
			say:    sayKey("state-ok, confirmed: %s", "confirm")},
		{name: "test_input_required_result_multiple_inputs", description: "Asks the user, the model and for directories at once.", signed: true,
			rounds: rounds(everything("Generate a greeting")),
			say: func(a map[string]string) string {
				return fmt.Sprintf("%s %s works in %s", a["greeting"], a["user_name"], a["client_roots"])
			}},
		{name: "test_input_required_result_multi_round", description: "Asks the user twice.", signed: true,
			rounds: rounds(
				mcp.InputRequestMap{"step1": field("Step 1: What is your name?", "name", "string")},
				mcp.InputRequestMap{"step2": field("Step 2: What is your favorite color?", "color", "string")}),
			say: func(a map[string]string) string { return a["step1"] + " likes " + a["step2"] }},
		{name: "test_input_required_result_capabilities", description: "Asks whatever the client says it can answer.", lenient: true,
			rounds: rounds(everything("Generate a short greeting")),
			say:    func(a map[string]string) string { return fmt.Sprintf("%d questions answered", len(a)) }},
	} {
		tools = append(tools, tool{d.name, d.description, d.schema, d.call})
	}
	return tools
}

func promptDialogue() *dialogue {
	return &dialogue{name: "test_input_required_result_prompt", description: "A prompt that asks the user what it is about.",
		rounds: rounds(mcp.InputRequestMap{"user_context": field("What context should the prompt use?", "context", "string")}),
		say:    sayKey("Use this context: %s", "user_context")}
}

// rounds returns a function whose questions do not depend on arguments.
func rounds(all ...mcp.InputRequestMap) func(map[string]string) []mcp.InputRequestMap {
	return func(map[string]string) []mcp.InputRequestMap { return all }
}

func everything(prompt string) mcp.InputRequestMap {
	return mcp.InputRequestMap{
		"user_name":    field("What is your name?", "name", "string"),
		"greeting":     completion(prompt, 50),
		"client_roots": roots(),
	}
}

// sayKey returns a function that formats the answer to the question with the
// given key.
func sayKey(format, key string) func(map[string]string) string {
	return func(answers map[string]string) string { return fmt.Sprintf(format, answers[key]) }
}

func textArgument(name string) string {
	return fmt.Sprintf(`{"type": "object", "properties": {%q: {"type": "string"}}, "required": [%[1]q]}`, name)
}

const userSchema = `{
	"type": "object",
	"properties": {
		"username": {"type": "string", "description": "User's response"},
		"email": {"type": "string", "description": "User's email address"}
	},
	"required": ["username", "email"]
}`

const defaultsSchema = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "Name", "default": "John Doe"},
		"age": {"type": "integer", "description": "Age", "default": 30},
		"score": {"type": "number", "description": "Score", "default": 95.5},
		"status": {"type": "string", "description": "Status", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "description": "Verified", "default": true}
	}
}`

const enumsSchema = `{
	"type": "object",
	"properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First Option"},
			{"const": "value2", "title": "Second Option"},
			{"const": "value3", "title": "Third Option"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [
			{"const": "value1", "title": "First Choice"},
			{"const": "value2", "title": "Second Choice"},
			{"const": "value3", "title": "Third Choice"}]}}
	}
}`
