package upstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// lines is a buffer for logs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestSecretsInArgumentsAreHidden(t *testing.T) {
	values := map[string]string{"S": "s3cr", "I": "an input", "U": "the user", "E": `s3cret "quoted"`, "SHORT": "of", "LONG": "s3cret-long"}
	resolved := func(mode string) *upstream.Config {
		cfg := childConfig(t, mode)
		cfg.Args = []string{"${{secrets.S}}", "--key=${input:I}", "${{user.U}}", "${E}", "${{secrets.SHORT}}", "${{secrets.LONG}}", "said ${NONE:-by default}"}
		got, unset := cfg.Resolve(upstream.Variables{Env: from(map[string]string{"E": values["E"]}), Input: from(values), User: from(values), Secret: from(values)})
		if len(unset) > 0 {
			t.Fatal(unset)
		}
		if got.Digest() != cfg.Digest() {
			t.Error("the digest is another one")
		}
		return got
	}
	clean := func(what, text string) {
		t.Helper()
		for name, v := range values {
			if name != "SHORT" && strings.Contains(text, v) {
				t.Errorf("%s shows %s: %q", what, name, text)
			}
		}
		if strings.Contains(text, "cret") {
			t.Errorf("%s shows a part of a value: %q", what, text)
		}
	}

	log := &lines{}
	d := newDialer()
	d.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := newPool(t, &upstream.PoolOptions{Dialer: d, Logger: d.Logger})

	s := p.Server(resolved("repeats-and-exits"), "")
	err := s.Connect(t.Context())
	if err == nil {
		t.Fatal("connected")
	}
	clean("error", err.Error())
	contains(t, "error", err.Error(), "stderr: [••• --key=••• ••• ••• of •••")
	clean("status", s.Status().Error)

	cfg := resolved("repeats")
	s = p.Server(cfg, "")
	if _, err := s.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Call(t.Context(), &mcp.CallToolParams{Name: "echo"}, nil)
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		t.Fatalf("error = %v", err)
	}
	clean("error of a call", err.Error())
	clean("error of the protocol", wire.Message)
	clean("its data", string(wire.Data))
	contains(t, "error of a call", err.Error(), "--key=•••", "of", "said by default")
	s.Close()
	p.Close()
	st := s.Status()
	clean("stderr", st.Stderr)
	contains(t, "stderr", st.Stderr, "got --key=•••\n", "got of\n", "got said by default\n")
	clean("warnings", strings.Join(st.Warnings, "\n"))
	contains(t, "warnings", strings.Join(st.Warnings, "\n"), "got --key=•••")
	clean("log", log.String())

	c, err := newDialer().Dial(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	clean("stderr of a connection", c.Stderr())
	clean("warnings of a connection", strings.Join(c.Warnings(), "\n"))
	if js, err := json.Marshal(cfg); err != nil || strings.Contains(string(js), "hidden") {
		t.Errorf("as JSON: %s, %v", js, err)
	}
}
