package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// SkillsExtension is the identifier of the extension with which a server
// publishes skills.
const SkillsExtension = "io.modelcontextprotocol/skills"

// skillParams are the parameters of skills/list and skills/get.
type skillParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"`
	URI    string `json:"uri,omitempty"`
}

// rawResult is a result that the caller decodes.
type rawResult struct {
	mcp.ResultBase
	data json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *rawResult) UnmarshalJSON(b []byte) error {
	r.data = bytes.Clone(b)
	return nil
}

// addSkillMethods makes a client able to send the requests of the extension.
func addSkillMethods(c *mcp.Client) {
	for _, method := range []string{"skills/list", "skills/get"} {
		if err := mcp.AddSendingCustomMethod[*skillParams, *rawResult](c, method); err != nil {
			panic(err) // the SDK defines the method
		}
	}
}

// ServesSkills reports whether the server declared the Skills extension.
func (c *Conn) ServesSkills() bool {
	r := c.InitializeResult()
	if r == nil || r.Capabilities == nil {
		return false
	}
	settings, ok := r.Capabilities.Extensions[SkillsExtension]
	_, isObject := settings.(map[string]any)
	return ok && isObject
}

// ListSkills returns the result of skills/list for a page.
func (c *Conn) ListSkills(ctx context.Context, cursor string) (json.RawMessage, error) {
	return c.requestSkills(ctx, "skills/list", &skillParams{Cursor: cursor})
}

// GetSkill returns the result of skills/get. The error wraps [fs.ErrNotExist]
// if the server serves no such skill.
func (c *Conn) GetSkill(ctx context.Context, uri string) (json.RawMessage, error) {
	data, err := c.requestSkills(ctx, "skills/get", &skillParams{URI: uri})
	return data, notExist(err)
}

func (c *Conn) requestSkills(ctx context.Context, method string, p *skillParams) (json.RawMessage, error) {
	res, err := mcp.CallCustomMethod[*skillParams, *rawResult](ctx, c.ClientSession, method, p)
	if err != nil {
		return nil, err
	}
	return res.data, nil
}

// ReadSkillFile returns the content of the resource with the given URI. The
// error wraps [fs.ErrNotExist] if the server serves no such resource.
func (c *Conn) ReadSkillFile(ctx context.Context, uri string) ([]byte, error) {
	content, err := c.ReadSkillResource(ctx, uri)
	if err != nil {
		return nil, err
	}
	if content.Blob != nil {
		return content.Blob, nil
	}
	return []byte(content.Text), nil
}

// ReadSkillResource is like ReadSkillFile, but returns the resource as the server
// sent it.
func (c *Conn) ReadSkillResource(ctx context.Context, uri string) (*mcp.ResourceContents, error) {
	res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, notExist(err)
	}
	if len(res.Contents) != 1 || res.Contents[0] == nil {
		return nil, fmt.Errorf("the server returned %d contents for one resource", len(res.Contents))
	}
	return res.Contents[0], nil
}

// legacyNotFound is the code of legacy servers for an unknown resource.
const legacyNotFound = -32002

// notExist wraps an error with which a server rejects a URI in
// [fs.ErrNotExist].
func notExist(err error) error {
	if wire := wireError(err); wire != nil && (wire.Code == jsonrpc.CodeInvalidParams || wire.Code == legacyNotFound) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// requestTimeout is the timeout of [Server.Do] unless the configuration has a
// shorter one.
const requestTimeout = time.Minute

func (c *Config) requestTimeout() time.Duration {
	if c.CallTimeout > 0 {
		return min(requestTimeout, c.CallTimeout)
	}
	return requestTimeout
}

// Do calls f with the connection, whose configuration is config. It has the timeout
// and the errors of [Server.Do].
func (c *Conn) Do(ctx context.Context, config *Config, what string, f func(context.Context, *Conn) error) error {
	limit := config.requestTimeout()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{"no answer", limit})
	defer cancel()
	err := f(ctx, c)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return requestError(config, what, err)
	}
	return nil
}

// Do calls f with a connection to the server, and connects first if necessary. f may
// send requests that are safe to repeat, because Do calls it again once if the
// connection breaks. The context of f ends with ctx or after a minute, or after
// [Config.CallTimeout] if that is less. Errors are redacted; an error of the protocol
// wraps a [*jsonrpc.Error]. what describes the operation in errors.
func (s *Server) Do(ctx context.Context, what string, f func(context.Context, *Conn) error) error {
	limit := s.config.requestTimeout()
	caller, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{"no answer", limit})
	defer cancel()
	ctx = detachContext(caller)
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return s.requestError(what, context.Cause(ctx))
		}
	}
	for tries := 0; ; tries++ {
		if err := s.Connect(ctx); err != nil {
			return err
		}
		i, conn, token := s.acquireConn()
		if i == nil {
			if tries > len(s.instances)+1 {
				return s.requestError(what, errEnded)
			}
			continue
		}
		start := time.Now()
		err := f(ctx, conn)
		s.releaseInstance(i, token, time.Since(start))
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return s.requestError(what, context.Cause(ctx))
		case wireError(err) != nil || !isBroken(conn):
			return s.requestError(what, err)
		}
		i.evict(conn, errors.New("connection broken"))
		if tries > 0 {
			return s.requestError(what, s.brokenError(conn, err))
		}
	}
}

// isBroken reports whether a connection has ended.
func isBroken(conn *Conn) bool {
	select {
	case <-conn.Done():
		return true
	default:
		return conn.link.isLost() || conn.link.ctx.Err() != nil
	}
}

// acquireConn registers a request with the connected instance that has the
// fewest running calls. If no instance is connected, it returns a nil instance.
func (s *Server) acquireConn() (*instance, *Conn, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := s.leastBusy()
	if best == nil {
		return nil, nil, ""
	}
	token := "lo-" + strconv.FormatInt(tokens.Add(1), 10)
	best.calls[token] = &call{o: &CallOptions{}}
	return best, best.conn, token
}

// requestError wraps err in an error that says what failed. It redacts secrets.
func (s *Server) requestError(what string, err error) error {
	return requestError(s.config, what, err)
}

func requestError(c *Config, what string, err error) error {
	text := err.Error()
	if wire := wireError(err); wire != nil {
		text = fmt.Sprintf("%s (%d)", clean(truncate(redactSecrets(c, wire.Message), 2000)), wire.Code)
	}
	return &displayError{redactText(c, fmt.Sprintf("%s of server %q: %s", what, c.Name, text)), err, 0}
}
