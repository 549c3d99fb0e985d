package clientname

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func request(params string) *jsonrpc.Request {
	return &jsonrpc.Request{Method: "initialize", Params: json.RawMessage(params)}
}

func TestObserve(t *testing.T) {
	for _, tt := range []struct{ params, want string }{
		{`{"clientInfo": {"name": "editor"}}`, "editor"},
		{`{"_meta": {"io.modelcontextprotocol/clientInfo": {"name": "new\nera"}}}`, "new era"},
		{`{"clientInfo": {"name": "` + strings.Repeat("x", 101) + `"}}`, ""},
		{`{"clientInfo": {"name": "x", "more": "` + strings.Repeat("x", 64<<10) + `"}}`, ""},
		{`{"clientInfo": 1}`, ""}, {`{}`, ""}, {``, ""},
	} {
		changes := 0
		o := New(func() { changes++ })
		o.observe(request(tt.params))
		if got := o.Name(); got != tt.want || (changes == 1) != (tt.want != "") {
			t.Errorf("%.80s: %q, %d changes", tt.params, got, changes)
		}
	}
}

// The first name counts, and only the first requests are searched.
func TestObserveStops(t *testing.T) {
	o := New(func() {})
	o.observe(request(`{"clientInfo": {"name": "first"}}`))
	o.observe(request(`{"clientInfo": {"name": "second"}}`))
	if o.Name() != "first" {
		t.Errorf("%q", o.Name())
	}
	late := New(func() {})
	for range 10 {
		late.observe(request(`{}`))
	}
	late.observe(request(`{"clientInfo": {"name": "late"}}`))
	if late.Name() != "" {
		t.Errorf("%q", late.Name())
	}
}

func TestTransport(t *testing.T) {
	here, there := mcp.NewInMemoryTransports()
	named := make(chan struct{})
	o := New(func() { close(named) })
	s := mcp.NewServer(&mcp.Implementation{Name: "server"}, nil)
	ss, err := s.Connect(t.Context(), o.Transport(there), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "editor"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	<-named
	if o.Name() != "editor" {
		t.Errorf("%q", o.Name())
	}
}
