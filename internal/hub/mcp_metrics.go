package hub

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

// used counts what an MCP client did with a skill.
func (m *metrics) used(u mcpserver.Use) {
	if u.Kind == mcpserver.UseLoad && u.Outcome == mcpserver.UseOK {
		m.loads.WithLabelValues().Inc()
	}
}

type verdictKey struct{}

// noteDecision keeps, for whoever counts a call, that policy did not let it through: the
// answer to a client says that in words only. A tool that there is not is an error.
func noteDecision(ctx context.Context, r policy.Record) {
	noteRefused(ctx, r.Decision != policy.Allowed && r.Details["code"] != string(policy.NoTool))
}

// noteRefused keeps whether the call that ctx is of was refused, as it is known so far.
func noteRefused(ctx context.Context, is bool) {
	if refused, ok := ctx.Value(verdictKey{}).(*atomic.Bool); ok {
		refused.Store(is)
	}
}

// counted makes a call of an MCP client and counts it. One that waits for what a person
// says is counted when it is made again, with the answer.
func (m *metrics) counted(ctx context.Context, call func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	refused := new(atomic.Bool)
	res, err := call(context.WithValue(ctx, verdictKey{}, refused))
	switch r, _ := res.(*mcp.CallToolResult); {
	case err != nil || r == nil:
		m.calls.WithLabelValues("error").Inc()
	case r.NeedsInput() || len(r.InputRequests) > 0: // the one is set when it is sent
	case !r.IsError:
		m.calls.WithLabelValues("ok").Inc()
	case refused.Load():
		m.calls.WithLabelValues("denied").Inc()
	default:
		m.calls.WithLabelValues("error").Inc()
	}
	return res, err
}
