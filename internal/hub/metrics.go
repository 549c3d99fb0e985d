package hub

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/loadout-dev/loadout/internal/account"
)

// metrics are what a node counts. They are of this process alone. Their labels have few
// values, which nobody outside can add to: no names of skills, tools and people.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	under    prometheus.Gauge
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

func newMetrics(version string) *metrics {
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: count("loadout_http_requests_total", "Requests that were answered.", "route", "status"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "loadout_http_request_seconds", Help: "How long requests took that were no streams.",
			Buckets: requestBuckets}, []string{"route"}),
		under:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadout_http_requests_under_way", Help: "Requests that are being answered."}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "loadout_http_streams", Help: "Answers that come bit by bit and are not at their end."}, []string{"route"}),
		signIns: count("loadout_sign_ins_total", "Attempts to sign in.", "by", "result"),

		turns:       count("loadout_turns_total", "Turns of conversations that ended on this node, by what they were and why they ended.", "kind", "reason"),
		turnSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "loadout_turn_seconds", Help: "How long turns took.", Buckets: turnBuckets}),
		loads:       count("loadout_skill_loads_total", "Skills that came into force in conversations, or were given to MCP clients."),
		calls:       count("loadout_tool_calls_total", "Calls of tools in conversations and by MCP clients, by what came of them.", "outcome"),
		answers:     count("loadout_model_requests_total", "Requests to language models.", "vendor", "outcome"),
		tokens:      count("loadout_model_tokens_total", "Tokens that language models took.", "vendor", "kind"),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "loadout_build_info", Help: "Which program this is."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.under, m.streams, m.signIns, build, m.turns, m.turnSeconds, m.loads, m.calls, m.answers, m.tokens,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.loads.WithLabelValues() // it is there before the first one
	return m
}

// answered notes a request. Routes and methods are those that there are, so that nobody
// can make the hub remember others.
func (m *metrics) answered(route string, status int, took time.Duration, stream bool) {
	route = routeLabel(route)
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if !stream {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// streaming notes that the answer to a request comes bit by bit, until done is called.
func (m *metrics) streaming(route string) (done func()) {
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

// signedIn notes an attempt.
func (m *metrics) signedIn(by string, err error) {
	result := "ok"
	if err != nil {
		result = "refused"
	}
	m.signIns.WithLabelValues(by, result).Inc()
}

// serveMetrics is for who operates the hub: routes and counts tell what people do.
func (h *Hub) serveMetrics() http.Handler {
	metrics := promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := account.Check(account.FromContext(r.Context()), account.HubOperate, account.Resource{}); err != nil {
			h.refuse(w, r, err)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}
