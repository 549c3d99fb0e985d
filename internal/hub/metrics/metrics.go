// Package metrics collects a node's Prometheus metrics. Start reading at
// [Metrics].
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics holds the metrics of this process. Labels have a fixed set of values to
// limit the number of time series; they contain no names of skills, tools or
// users.
type Metrics struct {
	Registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	Running  prometheus.Gauge
	streams  *prometheus.GaugeVec
	signIns  *prometheus.CounterVec

	turns       *prometheus.CounterVec
	turnSeconds prometheus.Histogram
	loads       *prometheus.CounterVec
	calls       *prometheus.CounterVec
	answers     *prometheus.CounterVec
	tokens      *prometheus.CounterVec
}

var (
	requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	turnBuckets    = []float64{.1, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600}
)

// New returns the metrics for the given program version.
func New(version string) *Metrics {
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: count("loadout_http_requests_total", "HTTP requests served.", "route", "status"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "loadout_http_request_seconds", Help: "Duration of requests other than streams.",
			Buckets: requestBuckets}, []string{"route"}),
		Running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadout_http_requests_under_way", Help: "Requests in progress."}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "loadout_http_streams", Help: "Streaming responses in progress."}, []string{"route"}),
		signIns: count("loadout_sign_ins_total", "Sign-in attempts.", "by", "result"),

		turns:       count("loadout_turns_total", "Turns of conversations that ended on this node, by kind and reason.", "kind", "reason"),
		turnSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "loadout_turn_seconds", Help: "Duration of turns.", Buckets: turnBuckets}),
		loads:       count("loadout_skill_loads_total", "Skills loaded in conversations or by MCP clients."),
		calls:       count("loadout_tool_calls_total", "Tool calls in conversations and by MCP clients, by outcome.", "outcome"),
		answers:     count("loadout_model_requests_total", "Requests to language models.", "vendor", "outcome"),
		tokens:      count("loadout_model_tokens_total", "Tokens used by language models.", "vendor", "kind"),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "loadout_build_info", Help: "Version of the program."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.Registry.MustRegister(m.requests, m.seconds, m.Running, m.streams, m.signIns, build, m.turns, m.turnSeconds, m.loads, m.calls, m.answers, m.tokens,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.loads.WithLabelValues() // exports 0 before the first load
	return m
}

// CountRequest counts an HTTP request and records its duration. It counts unknown
// routes together, so that clients cannot create labels.
func (m *Metrics) CountRequest(route string, status int, took time.Duration, stream bool) {
	route = routeLabel(route)
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if !stream {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// CountStream counts a streaming response as open until done is called.
func (m *Metrics) CountStream(route string) (done func()) {
	g := m.streams.WithLabelValues(routeLabel(route))
	g.Inc()
	return g.Dec
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
	m.signIns.WithLabelValues(method, result).Inc()
}
