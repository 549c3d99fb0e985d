package mcpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// Maximum number of items and pages in a server's list.
const (
	maxItems = 10_000
	maxPages = 200
)

// readPages reads all pages of a list. If the list exceeds a limit, it returns
// the items up to the limit and an error.
func readPages[T any](next func(cursor string) ([]T, string, mcp.Cacheable, error)) ([]T, mcp.Cacheable, error) {
	var all []T
	var fresh mcp.Cacheable
	cursor, seen := "", map[string]bool{}
	for n := range maxPages {
		items, more, c, err := next(cursor)
		if err != nil {
			return nil, fresh, err
		}
		if n == 0 {
			fresh = c
		}
		fresh = mergeCacheable(fresh, c)
		all = append(all, items...)
		if len(all) > maxItems {
			return all[:maxItems], fresh, fmt.Errorf("too many items in list (limit %d); remaining items omitted", maxItems)
		}
		if more == "" || seen[more] {
			return all, fresh, nil
		}
		seen[more], cursor = true, more
	}
	return all, fresh, fmt.Errorf("too many pages in list (limit %d); remaining pages omitted", maxPages)
}

// mergeCacheable combines two caching rules into one that satisfies both.
func mergeCacheable(a, b mcp.Cacheable) mcp.Cacheable {
	a.TTLMs = min(a.TTLMs, b.TTLMs)
	if b.CacheScope == "private" {
		a.CacheScope = "private"
	}
	return a
}

// listResult is a server's response to a list request.
type listResult[T any] struct {
	items []T
	fresh mcp.Cacheable
	err   error
}

// listTools returns all tools of the server, with the server's own names.
func (l *upstreamConn) listTools(ctx context.Context, meta map[string]any) (r listResult[*mcp.Tool], err error) {
	if l.capabilities().Tools == nil {
		return r, nil
	}
	r.items, r.fresh, err = readPages(func(cursor string) ([]*mcp.Tool, string, mcp.Cacheable, error) {
		res, err := l.conn.Session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor, Meta: serverMeta(meta, l, nil)})
		if err != nil {
			return nil, "", mcp.Cacheable{}, err
		}
		return res.Tools, res.NextCursor, res.Cacheable, nil
	})
	return r, err
}

func (l *upstreamConn) listPrompts(ctx context.Context, meta map[string]any) (r listResult[*mcp.Prompt], err error) {
	if l.capabilities().Prompts == nil {
		return r, nil
	}
	r.items, r.fresh, err = readPages(func(cursor string) ([]*mcp.Prompt, string, mcp.Cacheable, error) {
		res, err := l.conn.Session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor, Meta: serverMeta(meta, l, nil)})
		if err != nil {
			return nil, "", mcp.Cacheable{}, err
		}
		return res.Prompts, res.NextCursor, res.Cacheable, nil
	})
	return r, err
}

func (l *upstreamConn) listResources(ctx context.Context, meta map[string]any) (r listResult[*mcp.Resource], err error) {
	if l.capabilities().Resources == nil {
		return r, nil
	}
	r.items, r.fresh, err = readPages(func(cursor string) ([]*mcp.Resource, string, mcp.Cacheable, error) {
		res, err := l.conn.Session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor, Meta: serverMeta(meta, l, nil)})
		if err != nil {
			return nil, "", mcp.Cacheable{}, err
		}
		return res.Resources, res.NextCursor, res.Cacheable, nil
	})
	return r, err
}

func (l *upstreamConn) listTemplates(ctx context.Context, meta map[string]any) (r listResult[*mcp.ResourceTemplate], err error) {
	if l.capabilities().Resources == nil {
		return r, nil
	}
	r.items, r.fresh, err = readPages(func(cursor string) ([]*mcp.ResourceTemplate, string, mcp.Cacheable, error) {
		res, err := l.conn.Session.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor, Meta: serverMeta(meta, l, nil)})
		if err != nil {
			return nil, "", mcp.Cacheable{}, err
		}
		return res.ResourceTemplates, res.NextCursor, res.Cacheable, nil
	})
	var e *jsonrpc.Error
	if errors.As(err, &e) && e.Code == jsonrpc.CodeMethodNotFound { // many servers with resources do not support templates
		return r, nil
	}
	return r, err
}

// listAll reads one list from every server in parallel. It stores the items of
// each server in the list selected by field. If a server fails, listAll reports
// the error and keeps the items that the server listed before.
func listAll[T any](ctx context.Context, s *Server, in *inboundRequest, read func(*upstreamConn, context.Context, map[string]any) (listResult[T], error), field func(*lists) *[]T) (mcp.Cacheable, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.ListTimeout, fmt.Errorf("no answer within %v", s.opts.ListTimeout))
	defer cancel()
	results := make([]listResult[T], len(s.upstreams))
	var wg sync.WaitGroup
	for i, u := range s.upstreams {
		wg.Go(func() {
			l, err := in.conn(ctx, u)
			if err == nil {
				results[i], err = read(l, ctx, in.meta)
			}
			if err != nil && ctx.Err() != nil {
				err = cmp.Or(context.Cause(ctx), err)
			}
			if err == nil || results[i].items != nil {
				u.mu.Lock()
				*field(&u.lists) = results[i].items
				u.mu.Unlock()
			}
			results[i].err = err
		})
	}
	wg.Wait()
	var fresh mcp.Cacheable
	first := true
	for i, u := range s.upstreams {
		r := results[i]
		if r.err != nil {
			if len(s.upstreams) == 1 && r.items == nil {
				var e *jsonrpc.Error
				if errors.As(r.err, &e) {
					return fresh, unwrapError(r.err)
				}
			}
			s.reportError(u, r.err)
			r.fresh = mcp.Cacheable{} // the server may become available at any time
		}
		if first {
			fresh, first = r.fresh, false
		}
		fresh = mergeCacheable(fresh, r.fresh)
	}
	if fresh.CacheScope == "" {
		fresh.CacheScope = "private"
	}
	return fresh, nil
}

// checkCursor returns an error for any cursor, because all items are on the
// first page.
func checkCursor(cursor string) error {
	if cursor == "" {
		return nil
	}
	return rpcmessage.InvalidParams("unknown cursor: this list has one page")
}

func (s *Server) listTools(ctx context.Context, in *inboundRequest, p *mcp.ListToolsParams) (*mcp.ListToolsResult, error) {
	if p != nil {
		if err := checkCursor(p.Cursor); err != nil {
			return nil, err
		}
	}
	fresh, err := listAll(ctx, s, in, (*upstreamConn).listTools, func(k *lists) *[]*mcp.Tool { return &k.tools })
	if err != nil {
		return nil, err
	}
	tools := s.routes.setTools(s.upstreams)
	s.syncHeaders(tools)
	return &mcp.ListToolsResult{Tools: tools, Cacheable: fresh}, nil
}

func (s *Server) listPrompts(ctx context.Context, in *inboundRequest, p *mcp.ListPromptsParams) (*mcp.ListPromptsResult, error) {
	if p != nil {
		if err := checkCursor(p.Cursor); err != nil {
			return nil, err
		}
	}
	fresh, err := listAll(ctx, s, in, (*upstreamConn).listPrompts, func(k *lists) *[]*mcp.Prompt { return &k.prompts })
	if err != nil {
		return nil, err
	}
	return &mcp.ListPromptsResult{Prompts: s.routes.setPrompts(s.upstreams, s.deniedItems(in.ctx, "prompt")), Cacheable: fresh}, nil
}

func (s *Server) listResources(ctx context.Context, in *inboundRequest, p *mcp.ListResourcesParams) (*mcp.ListResourcesResult, error) {
	if p != nil {
		if err := checkCursor(p.Cursor); err != nil {
			return nil, err
		}
	}
	fresh, err := listAll(ctx, s, in, (*upstreamConn).listResources, func(k *lists) *[]*mcp.Resource { return &k.resources })
	if err != nil {
		return nil, err
	}
	return &mcp.ListResourcesResult{Resources: s.routes.setResources(s.upstreams, s.deniedItems(in.ctx, "resource")), Cacheable: fresh}, nil
}

func (s *Server) listTemplates(ctx context.Context, in *inboundRequest, p *mcp.ListResourceTemplatesParams) (*mcp.ListResourceTemplatesResult, error) {
	if p != nil {
		if err := checkCursor(p.Cursor); err != nil {
			return nil, err
		}
	}
	fresh, err := listAll(ctx, s, in, (*upstreamConn).listTemplates, func(k *lists) *[]*mcp.ResourceTemplate { return &k.templates })
	if err != nil {
		return nil, err
	}
	return &mcp.ListResourceTemplatesResult{ResourceTemplates: s.routes.setTemplates(s.upstreams, s.deniedItems(in.ctx, "resource")), Cacheable: fresh}, nil
}
