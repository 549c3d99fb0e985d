package metrics

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/toolresult"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

// CountUse counts the use of a skill by an MCP client.
func (m *Metrics) CountUse(u mcpserver.Use) {
	if u.Kind == "load" && !u.Refused && !u.Failed {
		m.loads.add(1)
	}
}

type verdictKey struct{}

// RecordDecision records in ctx whether the policy denied a call, because the
// call's result indicates a denial only in its text. A call to an unknown tool
// counts as an error.
func RecordDecision(ctx context.Context, r policy.Record) {
	RecordRefusal(ctx, r.Decision != policy.Allow && r.Details["code"] != string(decision.UnknownTool))
}

// RecordRefusal records in ctx whether a call was denied. A later record replaces
// an earlier one.
func RecordRefusal(ctx context.Context, denied bool) {
	if refused, ok := ctx.Value(verdictKey{}).(*atomic.Bool); ok {
		refused.Store(denied)
	}
}

// Instrument executes a call by an MCP client and counts it. A call that needs an
// answer from the user is counted when the client repeats it with the answer.
func (m *Metrics) Instrument(ctx context.Context, call func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	refused := new(atomic.Bool)
	res, err := call(context.WithValue(ctx, verdictKey{}, refused))
	switch r := toolresult.Of(res); {
	case err != nil || r == nil:
		m.calls.add(1, "error")
	case r.NeedsInput() || len(r.InputRequests) > 0: // NeedsInput is true only after sending
	case !r.IsError:
		m.calls.add(1, "ok")
	case refused.Load():
		m.calls.add(1, "denied")
	default:
		m.calls.add(1, "error")
	}
	return res, err
}
