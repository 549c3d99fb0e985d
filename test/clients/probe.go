package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The probe is an MCP server with texts that are longer than any known limit. Their
// words are numbered, so that a recording shows where a client cut them.

const (
	readingTool      = "probe_result"
	destructiveTool  = "probe_destruction"
	resultText       = "RESULT-IN-TEXT"
	resultStructured = "RESULT-IN-STRUCTURED-CONTENT"
)

var probeInstructions, probeDescription = numbered("i", 9600), numbered("d", 9600)

// numbered returns text of n characters that consists of numbered words, such
// as "i0000 i0001".
func numbered(prefix string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s%04d ", prefix, i)
	}
	return b.String()[:n-1] + "."
}

// runProbe serves the probe on standard input and output.
func runProbe() error {
	s := mcp.NewServer(&mcp.Implementation{Name: "probe", Version: "1"}, &mcp.ServerOptions{Instructions: probeInstructions})
	type result struct {
		Marker string `json:"marker"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: readingTool, Description: probeDescription, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, result, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: resultText}}}, result{resultStructured}, nil
		})
	destructive := true
	mcp.AddTool(s, &mcp.Tool{Name: destructiveTool, Description: "Deletes something.", Annotations: &mcp.ToolAnnotations{DestructiveHint: &destructive}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Deleted."}}}, nil, nil
		})
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// runTee runs a server and appends the client's messages to a file.
func runTee(file string, command []string) error {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var copied sync.WaitGroup
	copied.Go(func() {
		_, _ = io.Copy(io.MultiWriter(in, log), os.Stdin) // ends with the client or the server
		in.Close()
	})
	return cmd.Wait()
}
