package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Each invalid line gets one response, with the ID of its request if that can be told.
func TestInvalidLines(t *testing.T) {
	for line, want := range map[string]string{
		`{`:                                       `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		`7`:                                       `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":3}`:                `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"invalid request: no method, result or error"`,
		`{"jsonrpc":"2.0","id":"a","method":7}`:   `{"jsonrpc":"2.0","id":"a","error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":{},"method":"m"}`:  `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":[],"method":"m"}`:  `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"id":4,"method":"m"}`:                   `{"jsonrpc":"2.0","id":4,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","method":7}`:            `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":1.5,"method":"m"}`: `{"jsonrpc":"2.0","id":1.5,"error":{"code":-32600,"message":"invalid request: id is not a string or an integer"`,
		`{"jsonrpc":"2.0","id":1e3,"method":"m"}`: `{"jsonrpc":"2.0","id":1e3,"error":{"code":-32600,"message":"invalid request: id is not a string or an integer"`,
		`[]`: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: empty batch"`,
	} {
		var out bytes.Buffer
		c := connected(t, strings.NewReader(line+"\n"), &out)
		if msg, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("%s: read %v, %v", line, msg, err)
		}
		if got := out.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: response %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{`{"jsonrpc":"2.0","id":"1.5e3","method":"m"}`, `{"jsonrpc":"2.0","id":7,"method":"é"}`, `{"jsonrpc":"2.0","method":"n"}`} {
		var out bytes.Buffer
		c := connected(t, strings.NewReader(line), &out)
		if req := next(t, c); req.Method == "" || out.Len() > 0 {
			t.Errorf("%s: read %+v, response %q", line, req, out.String())
		}
	}
}

// closedPipe is an output that cannot be written.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// If the output is closed, the connection ends with its error.
func TestClosedOutput(t *testing.T) {
	for _, line := range []string{"{", "[7]", "[]", `{"jsonrpc":"2.0","id":3}`, strings.Repeat("x", maxLine+1)} {
		c := connected(t, strings.NewReader(line+"\n"+ping+"\n"), closedPipe{})
		if msg, err := c.Read(t.Context()); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%.20s: read %v, %v", line, msg, err)
		}
	}
	c := connected(t, strings.NewReader(ping+"\n"), closedPipe{})
	req := next(t, c)
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: json.RawMessage("{}")}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a response: %v", err)
	}
	if err := c.Write(t.Context(), &jsonrpc.Request{Method: "n"}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a notification: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	c = connected(t, strings.NewReader(""), &out)
	if err := c.Write(ctx, &jsonrpc.Request{Method: "n"}); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("with an ended context: %v, wrote %q", err, out.String())
	}
}

// From protocol version 2025-06-18 on, there are no batches. The version is that of the
// successful response to initialize.
func TestBatchesOfVersions(t *testing.T) {
	for version, refused := range map[string]bool{"2025-03-26": false, "2025-06-18": true, "2026-01-01": true} {
		in, to := io.Pipe()
		defer to.Close()
		var out bytes.Buffer
		c := connected(t, in, &out)
		go io.WriteString(to, initialize+"\n")
		req := next(t, c)
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"protocolVersion":"` + version + `"}`)}); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		go io.WriteString(to, "["+ping+"]\n"+`{"jsonrpc":"2.0","id":"last","method":"m"}`+"\n")
		req = next(t, c)
		if got := strings.Contains(out.String(), "protocol version "+version+" has no batches"); got != refused || (req.Method == "m") != refused {
			t.Errorf("version %s: read %s, response %q", version, req.Method, out.String())
		}
	}
}

// A notification that a request of a batch was cancelled does not end the wait for the
// batch; of a single request it does.
func TestCancelledInBatch(t *testing.T) {
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	for input, want := range map[string]time.Duration{
		ping + "\n" + cancelled:        0,
		"[" + ping + "]\n" + cancelled: drainTimeout,
		ping + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`: drainTimeout,
		ping + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`:               drainTimeout,
		ping + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`:  drainTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := connected(t, strings.NewReader(input), io.Discard)
			next(t, c)
			next(t, c)
			begin := time.Now()
			if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("read %v", err)
			}
			if got := time.Since(begin); got != want {
				t.Errorf("%s: ended after %v, want %v", input, got, want)
			}
		})
	}
}
