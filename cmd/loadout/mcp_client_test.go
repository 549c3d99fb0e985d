//lint:file-ignore SA1019 clients of earlier protocol versions have roots

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// runMCPClient is an MCP client for scripts:
//
//	mcp-client CLIENT COMMAND... < STEPS
//
// It starts the command as a server, under the name CLIENT, with the roots in the
// first step. It prints what each step shows a model. The steps are lines:
//
//	roots URI...            the client has these roots from now on
//	gone SKILL              wait until the server no longer has the prompt of a skill
//	texts                   the instructions, and the description of load_skill
//	call TOOL ARGUMENTS     the text of a tool's result
func runMCPClient() {
	if err := playMCPClient(os.Args[1], os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-client:", err)
		os.Exit(1)
	}
}

func playMCPClient(name string, command []string, in io.Reader, out io.Writer) (err error) {
	steps, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	changed := make(chan struct{}, 100)
	c := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ClientOptions{
		Capabilities:             &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}},
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { changed <- struct{}{} },
	})
	var roots atomic.Pointer[mcp.ListRootsResult]
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "roots/list" {
				return roots.Load(), nil
			}
			return next(ctx, method, req)
		}
	})
	var ss *mcp.ClientSession
	defer func() {
		if ss != nil {
			err = errors.Join(err, ss.Close())
		}
	}()
	for line := range strings.Lines(string(steps)) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "roots":
			list := &mcp.ListRootsResult{Roots: []*mcp.Root{}}
			for _, uri := range strings.Fields(rest) {
				list.Roots = append(list.Roots, &mcp.Root{URI: uri})
			}
			roots.Store(list)
			if ss != nil {
				c.AddRoots(&mcp.Root{URI: "file:///" + rest}) // notifies the server
				break
			}
			server := exec.Command(command[0], command[1:]...)
			server.Stderr = os.Stderr
			if ss, err = c.Connect(ctx, &mcp.CommandTransport{Command: server}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
				return err
			}
		case "gone":
			for {
				list, err := ss.ListPrompts(ctx, nil)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(list.Prompts, func(p *mcp.Prompt) bool { return p.Name == rest }) {
					break
				}
				select {
				case <-changed:
				case <-ctx.Done():
					return fmt.Errorf("the server still has %s", rest)
				}
			}
		case "texts":
			list, err := ss.ListTools(ctx, nil)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, ss.InitializeResult().Instructions)
			for _, tool := range list.Tools {
				if tool.Name == "load_skill" {
					fmt.Fprintln(out, "load_skill: "+tool.Description)
				}
			}
		case "call":
			tool, args, _ := strings.Cut(rest, " ")
			res, err := ss.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
			if err != nil {
				return err
			}
			for _, content := range res.Content {
				if text, ok := content.(*mcp.TextContent); ok {
					fmt.Fprintln(out, text.Text)
				}
			}
		}
	}
	return nil
}
