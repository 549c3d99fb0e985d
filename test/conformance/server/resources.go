package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const watchedURI = "test://watched-resource"

func addResources(s *mcp.Server) {
	for _, r := range []struct {
		name, description string
		contents          mcp.ResourceContents
	}{
		{"static-text", "A text that stays as it is.",
			mcp.ResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."}},
		{"static-binary", "A picture that stays as it is.",
			mcp.ResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: redPixel}},
		{"watched-resource", "A text that is said to change every few seconds.",
			mcp.ResourceContents{URI: watchedURI, MIMEType: "text/plain", Text: "This is the content of the watched resource."}},
	} {
		s.AddResource(&mcp.Resource{URI: r.contents.URI, Name: r.name, Description: r.description, MIMEType: r.contents.MIMEType},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				c := r.contents
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
			})
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template",
		Description: "The data of an id.", MIMEType: "application/json"}, readTemplate)
}

func readTemplate(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	id, _, _ := strings.Cut(strings.TrimPrefix(uri, "test://template/"), "/")
	text, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}}, nil
}

// The SDK stores subscriptions; these functions decide which resources support
// them.

func subscribe(_ context.Context, req *mcp.SubscribeRequest) error { return watchable(req.Params.URI) }

func unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	return watchable(req.Params.URI)
}

func watchable(uri string) error {
	if uri != watchedURI {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("resource %s does not support subscriptions", uri)}
	}
	return nil
}

// watch notifies subscribers of changes to the watched resource.
type watch struct{ server *mcp.Server }

// run sends notifications until ctx is done.
func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = w.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: watchedURI}) // a closed subscription is no error
		}
	}
}
