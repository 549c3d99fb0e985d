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

// metrics are what a node counts. They are of this process alone.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	under    prometheus.Gauge
	signIns  *prometheus.CounterVec
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadout_http_requests_total", Help: "Requests that were answered."}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "loadout_http_request_seconds", Help: "How long requests took.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"route"}),
		under:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadout_http_requests_under_way", Help: "Requests that are being answered."}),
		signIns: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadout_sign_ins_total", Help: "Attempts to sign in."}, []string{"by", "result"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "loadout_build_info", Help: "Which program this is."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.under, m.signIns, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// answered notes a request. Routes and methods are those that there are, so that nobody
// can make the hub remember others.
func (m *metrics) answered(route, method string, status int, took time.Duration) {
	if route == "" || route == "/" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
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
