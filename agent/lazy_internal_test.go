package agent

import (
	"context"
	"encoding/json"
	"testing"
)

// A lazy copy of a tool of one conversation calls the functions of another one.
func TestLazyCopyUsesOnlyOpenedTool(t *testing.T) {
	tool := func(of string) Tool {
		answer := func() (*Outcome, error) { return &Outcome{Text: of}, nil }
		return Tool{
			Call:      func(context.Context, json.RawMessage) (*Outcome, error) { return answer() },
			checkLoad: func(context.Context, string, json.RawMessage) (*Outcome, error) { return answer() },
		}
	}
	lazy := tool("first").Lazy(nil).Lazy(func() (Tool, error) { return tool("second"), nil })
	called, err := lazy.Call(t.Context(), nil)
	if err != nil || called.Text != "second" {
		t.Errorf("the call is that of the %+v conversation: %v", called, err)
	}
	checked, err := lazy.checkLoad(t.Context(), "mcp.b/y", nil)
	if err != nil || checked.Text != "second" {
		t.Errorf("the check is that of the %+v conversation: %v", checked, err)
	}
}
