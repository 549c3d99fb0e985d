// Package metrics collects a node's metrics and writes them in the Prometheus
// text format. Start reading at [Metrics].
package metrics

import (
	"strconv"
	"time"
)

// Metrics holds the metrics of this process. Labels have a fixed set of values to
// limit the number of time series; they contain no names of skills, tools or
// users. Metrics are safe for concurrent use.
type Metrics struct {
	families []*family // all of the following
	requests *family
	seconds  *family
	running  *family
	streams  *family
	signIns  *family

	turns       *family
	turnSeconds *family
	loads       *family
	calls       *family
	answers     *family
	tokens      *family

	state *State // nil before SetState
}

var (
	requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	turnBuckets    = []float64{.1, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600}
)

// New returns the metrics for the given program version.
func New(version string) *Metrics {
	m := &Metrics{
		requests: newFamily("loadout_http_requests_total", "HTTP requests served.", counter, "route", "status"),
		seconds:  newHistogram("loadout_http_request_seconds", "Duration of requests other than streams.", requestBuckets, "route"),
		running:  newFamily("loadout_http_requests_under_way", "Requests in progress.", gauge),
		streams:  newFamily("loadout_http_streams", "Streaming responses in progress.", gauge, "route"),
		signIns:  newFamily("loadout_sign_ins_total", "Sign-in attempts.", counter, "by", "result"),

		turns:       newFamily("loadout_turns_total", "Turns of conversations that ended on this node, by kind and reason.", counter, "kind", "reason"),
		turnSeconds: newHistogram("loadout_turn_seconds", "Duration of turns.", turnBuckets),
		loads:       newFamily("loadout_skill_loads_total", "Skills loaded in conversations or by MCP clients.", counter),
		calls:       newFamily("loadout_tool_calls_total", "Tool calls in conversations and by MCP clients, by outcome.", counter, "outcome"),
		answers:     newFamily("loadout_model_requests_total", "Requests to language models.", counter, "outcome", "vendor"),
		tokens:      newFamily("loadout_model_tokens_total", "Tokens used by language models.", counter, "kind", "vendor"),
	}
	build := newFamily("loadout_build_info", "Version of the program.", gauge, "version")
	build.add(1, version)
	m.families = []*family{m.requests, m.seconds, m.running, m.streams, m.signIns, m.turns, m.turnSeconds, m.loads, m.calls, m.answers, m.tokens, build}
	for _, f := range m.families {
		if len(f.labels) == 0 { // export 0 before the first change
			f.update(nil, func(*series) {})
		}
	}
	return m
}

// SetState adds the metrics of s. It must be called before Text.
func (m *Metrics) SetState(s State) { m.state = &s }

// ContentType is the media type of [Metrics.Text].
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text returns the current metrics in the Prometheus text format.
func (m *Metrics) Text() []byte {
	blocks := append(runtimeBlocks(), processBlocks()...)
	for _, f := range m.families {
		blocks = append(blocks, f.block())
	}
	if m.state != nil {
		blocks = append(blocks, m.state.blocks()...)
	}
	return joinBlocks(blocks)
}

// CountRunning counts a request as running until done is called.
func (m *Metrics) CountRunning() (done func()) {
	m.running.add(1)
	return func() { m.running.add(-1) }
}

// CountRequest counts an HTTP request and records its duration. It counts unknown
// routes together, so that clients cannot create labels.
func (m *Metrics) CountRequest(route string, status int, took time.Duration, stream bool) {
	route = routeLabel(route)
	m.requests.add(1, route, strconv.Itoa(status))
	if !stream {
		m.seconds.observe(took.Seconds(), route)
	}
}

// CountStream counts a streaming response as open until done is called.
func (m *Metrics) CountStream(route string) (done func()) {
	route = routeLabel(route)
	m.streams.add(1, route)
	return func() { m.streams.add(-1, route) }
}

func routeLabel(route string) string {
	if route == "" || route == "/" {
		return "none"
	}
	return route
}

// CountSignIn counts a sign-in attempt by method and result.
func (m *Metrics) CountSignIn(method string, err error) {
	result := "ok"
	if err != nil {
		result = "refused"
	}
	m.signIns.add(1, method, result)
}
