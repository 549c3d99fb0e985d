package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// schemaTools returns tools whose schemas the server must pass on unchanged,
// including their HTTP annotations.
func schemaTools() []tool {
	return []tool{
		{name: "json_schema_2020_12_tool", description: "Has a schema with much of JSON Schema 2020-12 in it.", schema: richSchema, call: echo},
		{name: "test_x_mcp_header", description: "Has an argument that clients repeat in a header.", schema: headerSchema, call: echo},
	}
}

func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return say("Called with " + string(req.Params.Arguments)), nil
}

const headerSchema = `{
	"type": "object",
	"properties": {
		"region": {"type": "string", "description": "repeated in Mcp-Param-Region", "x-mcp-header": "Region"},
		"level": {"type": "integer", "description": "in the body only"}
	}
}`

// richSchema is the suite's schema. The suite compares it with the schema it
// receives.
const richSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`
