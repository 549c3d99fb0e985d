package detonation

import (
	"bytes"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/sandbox"
)

// Limits of the requests that a recorder stores.
const (
	maxRequests = 200
	maxData     = 4 << 20
)

// recorder answers the requests of a run, and stores them.
type recorder struct {
	marker string // file in the home directory that downloaded code creates

	mu       sync.Mutex // guards the fields below
	requests []request
	size     int
	dropped  bool
}

// request is a recorded request.
type request struct {
	sandbox.Request
	code bool // whether the response was code
}

// answer is the function for [sandbox.Network.Answer].
func (w *recorder) answer(r sandbox.Request) []byte {
	body := w.response(&r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.requests) == maxRequests || w.size+len(r.Data) > maxData {
		w.dropped = true
		return body
	}
	w.size += len(r.Data)
	w.requests = append(w.requests, request{r, len(body) > 2})
	return body
}

// all returns the recorded requests.
func (w *recorder) all() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

var userAgent = lazyregexp.New(`(?im)^User-Agent: *(curl|wget|python|node)`)

// response returns the content of a response. If the request seems to download
// code, the content is code that creates the marker. Otherwise it is an empty
// JSON object.
func (w *recorder) response(r *sandbox.Request) []byte {
	head, _, _ := bytes.Cut(r.Data, []byte("\r\n\r\n"))
	if r.Method != "GET" || bytes.Contains(head, []byte("application/json")) {
		return []byte("{}")
	}
	at, _, _ := strings.Cut(r.URL, "?")
	program := ""
	if m := userAgent.FindSubmatch(head); m != nil {
		program = strings.ToLower(string(m[1]))
	}
	switch ext := path.Ext(at); {
	case ext == ".json":
	case ext == ".py", ext == "" && program == "python":
		return fmt.Appendf(nil, "import os\nopen(os.path.join(os.environ.get('LOADOUT_WORK', '/work'), '%s'), 'w').close()\n", w.marker)
	case ext == ".js", ext == ".mjs", ext == ".cjs", ext == "" && program == "node":
		return fmt.Appendf(nil, "process.getBuiltinModule('fs').writeFileSync((process.env.LOADOUT_WORK || '/work') + '/%s', '');\n", w.marker)
	case ext == ".sh", ext == ".bash", program == "curl", program == "wget":
		return fmt.Appendf(nil, "#!/bin/sh\n: > \"${LOADOUT_WORK:-/work}/%s\"\n", w.marker)
	}
	return []byte("{}")
}

// requestedHosts returns the hosts of requests with their ports, sorted.
func requestedHosts(all []request) []string {
	out := []string{}
	for _, r := range all {
		out = append(out, r.address())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// address returns the host and the port, if it is known.
func (r *request) address() string {
	if r.Port == 0 {
		return r.Host
	}
	return net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port)))
}

// describe describes the request for the excerpt of a finding.
func (r *request) describe() string {
	if r.Method == "CONNECT" || !strings.HasPrefix(r.URL, "/") {
		return r.Method + " " + cmpOr(r.URL, r.address())
	}
	scheme, host := "http", strings.TrimSuffix(r.address(), ":80")
	if at, ok := strings.CutSuffix(host, ":443"); ok {
		scheme, host = "https", at
	}
	return r.Method + " " + scheme + "://" + host + r.URL
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
