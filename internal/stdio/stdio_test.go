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
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func connected(t *testing.T, in io.Reader, out io.Writer) mcp.Connection {
	t.Helper()
	c, err := (&Transport{In: in, Out: out}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// next reads a request.
func next(t *testing.T, c mcp.Connection) *jsonrpc.Request {
	t.Helper()
	msg, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		t.Fatalf("read %T", msg)
	}
	return req
}

func answer(t *testing.T, c mcp.Connection, id jsonrpc.ID) {
	t.Helper()
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
}

// A line that is too long is refused and skipped, whatever the size of the
// buffer; one that fits is not.
func TestLinesLong(t *testing.T) {
	var out bytes.Buffer
	fits := `{"jsonrpc":"2.0","id":2,"method":"` + strings.Repeat("a", maxLine-100) + `"}`
	c := connected(t, strings.NewReader(strings.Repeat("b", maxLine+1)+"\n"+fits+"\n"+strings.Repeat("c", 2*maxLine)), &out)
	if req := next(t, c); len(req.Method) != maxLine-100 {
		t.Errorf("a method of %d bytes", len(req.Method))
	}
	answer(t, c, mustID(t, 2.0))
	if msg, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("read %v, %v", msg, err)
	}
	if got := strings.Count(out.String(), `"code":-32600`); got != 2 {
		t.Errorf("%d refusals in %s", got, out.String())
	}
}

func mustID(t *testing.T, v any) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// After the end of the input, the connection stays open until all requests are answered
// or cancelled, up to a limit.
func TestLinesEnd(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen"}`
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	tests := map[string]struct {
		input  []string
		answer bool
		lasts  time.Duration
	}{
		"nothing":    {nil, false, 0},
		"answered":   {[]string{ping}, true, time.Second},
		"cancelled":  {[]string{ping, cancelled}, false, 0},
		"unanswered": {[]string{ping}, false, drainTimeout},
		"listening":  {[]string{listen}, false, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connected(t, strings.NewReader(strings.Join(tt.input, "\n")), io.Discard)
				for range tt.input {
					next(t, c)
				}
				if tt.answer {
					go func() {
						time.Sleep(time.Second)
						answer(t, c, mustID(t, 1.0))
					}()
				}
				begin := time.Now()
				if msg, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
					t.Errorf("read %v, %v", msg, err)
				}
				if got := time.Since(begin); got != tt.lasts {
					t.Errorf("it lasted %v, want %v", got, tt.lasts)
				}
			})
		})
	}
}

// Closing the connection, or the end of its context, wakes a reader.
func TestReadDoesNotMissWakeup(t *testing.T) {
	in, _ := io.Pipe()
	c := connected(t, in, io.Discard)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("read %v", err)
	}
	time.AfterFunc(10*time.Millisecond, func() { c.Close() })
	if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("read %v", err)
	}
	in.Close() // ends the goroutine that reads
}

// Messages of a batch are answered in one batch, including their errors. A byte order
// mark before the first line is ignored.
func TestLinesBatch(t *testing.T) {
	var out bytes.Buffer
	c := connected(t, strings.NewReader("\xef\xbb\xbf["+ping+","+ping+`,{"jsonrpc":"2.0","id":"b","method":"ping"},7]`+"\n[7]\n"), &out)
	first, second := next(t, c), next(t, c)
	answer(t, c, second.ID)
	if out.Len() > 0 {
		t.Errorf("half a batch is answered: %s", out.String())
	}
	answer(t, c, first.ID)
	if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("read %v", err)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 2 {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	var batch []struct {
		ID     any
		Result any
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal([]byte(got[0]), &batch); err != nil || len(batch) != 4 {
		t.Fatalf("%v: %s", err, got[0])
	}
	if batch[0].Error == nil || batch[1].Error == nil || batch[2].ID != "b" || batch[3].ID != 1.0 {
		t.Errorf("batch %s", got[0])
	}
	if !strings.HasPrefix(got[1], `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
		t.Errorf("second batch %s", got[1])
	}
}

// Whatever comes in, what goes out is JSON-RPC, every request is answered
// once, and the connection ends with its input.
func FuzzLines(f *testing.F) {
	for _, in := range []string{ping, "[" + ping + "]", "{", "\n\r\n 7", `{"jsonrpc":"2.0","id":"x"}`, initialize, "\xef\xbb\xbf" + ping + "\n" + ping,
		`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"b"}]` + "\n" + ping, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		c := connected(t, bytes.NewReader(in), &out)
		for {
			msg, err := c.Read(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
				answer(t, c, req.ID)
			}
		}
		for line := range strings.Lines(out.String()) {
			if !strings.HasSuffix(line, "\n") || !json.Valid([]byte(line)) || !strings.Contains(line, `"jsonrpc":"2.0"`) {
				t.Errorf("answer %q", line)
			}
		}
	})
}
