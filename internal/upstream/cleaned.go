package upstream

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// cleanElicit returns a server's request for user input without hidden characters
// and delimiters. Its message begins with the server's name, so that a server cannot
// imitate prompts of this program. It keeps only the client action of the metadata,
// which package clientaction checks.
func cleanElicit(server string, p *mcp.ElicitParams) *mcp.ElicitParams {
	out := &mcp.ElicitParams{Mode: p.Mode, URL: clean(p.URL), ElicitationID: clean(p.ElicitationID)}
	out.Message = clean(server) + " asks: " + untrusted.New(p.Message).ForModelLines()
	if action, ok := p.Meta[actionKey]; ok {
		out.Meta = mcp.Meta{actionKey: action}
	}
	if p.RequestedSchema != nil {
		if js, err := json.Marshal(p.RequestedSchema); err == nil {
			out.RequestedSchema = untrusted.CleanJSON(js)
		}
	}
	return out
}

// actionKey is the metadata key of a request that a client answers with an
// action.
const actionKey = "loadout/action"

// cleanInputRequests replaces the requests for user input in a result with cleaned
// ones; see [cleanElicit].
func cleanInputRequests(server string, res *mcp.CallToolResult) {
	for id, req := range res.InputRequests {
		if e, ok := req.(*mcp.ElicitParams); ok {
			res.InputRequests[id] = cleanElicit(server, e)
		}
	}
}

// cleanWireError returns a server's protocol error without hidden characters and
// delimiters in its message and data.
func cleanWireError(e *jsonrpc.Error) *jsonrpc.Error {
	out := &jsonrpc.Error{Code: e.Code, Message: untrusted.New(e.Message).ForModelLines()}
	if len(e.Data) > 0 {
		out.Data = untrusted.CleanJSON(e.Data)
	}
	return out
}

func clean(s string) string { return untrusted.New(s).ForModel() }
