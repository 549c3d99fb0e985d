//lint:file-ignore SA1019 the suite still tests what is deprecated

package main

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// noticeTools returns tools that send notifications while they run.
func noticeTools() []tool {
	return []tool{
		{name: "test_tool_with_logging", description: "Logs three messages while it runs.",
			call: logging("Tool execution started", "Tool processing data", "Tool execution completed")},
		{name: "test_logging_tool", description: "Logs one message, for whoever asked for messages.",
			call: logging("Tool executed")},
		{name: "test_tool_with_progress", description: "Reports progress three times.", call: progress},
		{name: "test_reconnection", description: "Hangs up before it answers: the answer is for a client that comes back.", call: hangUp},
	}
}

// logging returns a handler that logs messages at intervals.
func logging(messages ...string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i, m := range messages {
			if err := pause(ctx, min(i, 1)); err != nil {
				return nil, err
			}
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Logger: "conformance", Data: m}); err != nil {
				return nil, err
			}
		}
		return say("Everything is logged that the client asked for."), nil
	}
}

func progress(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	for i, done := range []float64{0, 50, 100} {
		if err := pause(ctx, min(i, 1)); err != nil {
			return nil, err
		}
		if token == nil {
			continue // no client subscribed
		}
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
			return nil, err
		}
	}
	return say("Done, 100 of 100."), nil
}

// hangUp closes the stream on which the client waits. The event store keeps the
// result until the client requests it.
func hangUp(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Extra != nil && req.Extra.CloseSSEStream != nil {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: step})
	}
	if err := pause(ctx, 2); err != nil {
		return nil, err
	}
	return say("Welcome back."), nil
}

const step = 50 * time.Millisecond

// pause waits for a number of steps or until ctx is done.
func pause(ctx context.Context, steps int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(steps) * step):
		return nil
	}
}
