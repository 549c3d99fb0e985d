// Command client is tested by the official conformance suite. It connects with
// an [upstream.Dialer], as Loadout does for skill servers, and then does what
// the scenario expects. MCP_CONFORMANCE_SCENARIO names the scenario; the only
// argument is the URL.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Getenv("MCP_CONFORMANCE_CONTEXT"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// scenario runs a client's steps after it has connected.
type scenario func(ctx context.Context, s *mcp.ClientSession, given suiteContext) error

// suiteContext is the additional input of a scenario.
type suiteContext struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ToolCalls    []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"toolCalls"`
}

var scenarios = map[string]scenario{
	"initialize":                          list,
	"request-metadata":                    nothing,
	"json-schema-ref-no-deref":            list,
	"tools_call":                          calling("add_numbers", map[string]any{"a": 5, "b": 3}),
	"elicitation-sep1034-client-defaults": calling("test_client_elicitation_defaults", nil),
	"sse-retry":                           calling("test_reconnection", nil),
	"json-schema-2020-12-preservation":    echoSchema,
	"sep-2322-client-request-state":       rounds,
	"http-standard-headers":               useOneOfEach,
	"http-custom-headers":                 makeSuiteCalls,
	"http-invalid-tool-headers":           callAll,
}

// skillScenarios are the scenarios of the Skills extension. true means that the
// client loads the skills and reads their files.
var skillScenarios = map[string]bool{
	"sep-2640-client-no-prefetch":        false,
	"sep-2640-client-verify-digest":      true,
	"sep-2640-client-verify-size":        true,
	"sep-2640-client-verify-frontmatter": true,
}

func run(ctx context.Context, args []string, name, given string) error {
	if len(args) != 1 || name == "" {
		return fmt.Errorf("missing server URL, or MCP_CONFORMANCE_SCENARIO not set to one of: %s", strings.Join(slices.Sorted(maps.Keys(scenarios)), ", "))
	}
	var c suiteContext
	if given != "" {
		if err := json.Unmarshal([]byte(given), &c); err != nil {
			return fmt.Errorf("read MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	d := &upstream.Dialer{Client: mcp.Implementation{Name: "test-client", Version: "1.0.0"}}
	do, ok := scenarios[name]
	if strings.HasPrefix(name, "auth/") {
		do, ok = calling("test-tool", nil), true
		d.OAuth = authorizer(c)
	}
	if loads, isSkills := skillScenarios[name]; isSkills {
		return useSkills(ctx, d, args[0], loads)
	}
	if !ok {
		return fmt.Errorf("unknown scenario %q", name)
	}
	conn, err := d.Dial(ctx, &upstream.Config{Name: "suite", Type: upstream.HTTP, URLs: args}, &upstream.DialOptions{Options: options(name)})
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(ctx, conn.ClientSession, c)
}

// options returns the client options for a scenario. Two scenarios need an
// answer to elicitations.
func options(name string) *mcp.ClientOptions {
	var content map[string]any
	switch name {
	case "elicitation-sep1034-client-defaults":
		content = map[string]any{}
	case "sep-2322-client-request-state":
		content = map[string]any{"confirmed": true}
	default:
		return nil
	}
	return &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: maps.Clone(content)}, nil
	}}
}

func nothing(context.Context, *mcp.ClientSession, suiteContext) error { return nil }

func list(ctx context.Context, s *mcp.ClientSession, _ suiteContext) error {
	_, err := s.ListTools(ctx, nil)
	return err
}

// calling returns a scenario that lists the tools and calls one.
func calling(tool string, args map[string]any) scenario {
	return func(ctx context.Context, s *mcp.ClientSession, given suiteContext) error {
		if err := list(ctx, s, given); err != nil {
			return err
		}
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: orEmpty(args)})
		return err
	}
}

func orEmpty(args map[string]any) map[string]any {
	if args == nil {
		return map[string]any{}
	}
	return args
}

// echoSchema sends a received schema back, so that the suite can check that the
// client preserved it.
func echoSchema(ctx context.Context, s *mcp.ClientSession, _ suiteContext) error {
	res, err := s.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, t := range res.Tools {
		if t.Name == "json_schema_2020_12_tool" {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "json_schema_echo", Arguments: map[string]any{"schema": t.InputSchema}})
			return err
		}
	}
	return fmt.Errorf("tool json_schema_2020_12_tool is not listed")
}

// rounds calls tools that need input. Errors are only logged, because the suite
// expects the client to reject some requests.
func rounds(ctx context.Context, s *mcp.ClientSession, _ suiteContext) error {
	for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
		try(s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: map[string]any{}}))
	}
	return nil
}

// try logs an error and continues, because the suite checks the requests that
// it received.
func try(_ any, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
	}
}

// useOneOfEach calls the first tool, reads the first resource and gets the
// first prompt.
func useOneOfEach(ctx context.Context, s *mcp.ClientSession, _ suiteContext) error {
	if res, err := s.ListTools(ctx, nil); err == nil && len(res.Tools) > 0 {
		try(s.CallTool(ctx, &mcp.CallToolParams{Name: res.Tools[0].Name, Arguments: map[string]any{}}))
	}
	if res, err := s.ListResources(ctx, nil); err == nil && len(res.Resources) > 0 {
		try(s.ReadResource(ctx, &mcp.ReadResourceParams{URI: res.Resources[0].URI}))
	}
	if res, err := s.ListPrompts(ctx, nil); err == nil && len(res.Prompts) > 0 {
		try(s.GetPrompt(ctx, &mcp.GetPromptParams{Name: res.Prompts[0].Name}))
	}
	return nil
}

// makeSuiteCalls makes the calls listed in the suite's context.
func makeSuiteCalls(ctx context.Context, s *mcp.ClientSession, given suiteContext) error {
	if err := list(ctx, s, given); err != nil {
		return err
	}
	for _, c := range given.ToolCalls {
		try(s.CallTool(ctx, &mcp.CallToolParams{Name: c.Name, Arguments: orEmpty(c.Arguments)}))
	}
	return nil
}

// callAll calls every tool accepted by the client.
func callAll(ctx context.Context, s *mcp.ClientSession, _ suiteContext) error {
	res, err := s.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, t := range res.Tools {
		try(s.CallTool(ctx, &mcp.CallToolParams{Name: t.Name, Arguments: map[string]any{"region": "us-west1"}}))
	}
	return nil
}
