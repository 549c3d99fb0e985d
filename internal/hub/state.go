package hub

import (
	"database/sql"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// state tells, when it is asked, how the parts of a node are.
type state struct{ h *Hub }

var _ prometheus.Collector = state{}

// stateMetric is a metric that is asked for and not counted along the way.
type stateMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newState(name, help string, kind prometheus.ValueType, labels ...string) stateMetric {
	return stateMetric{prometheus.NewDesc(name, help, labels, nil), kind}
}

var (
	turnsRunning = newState("loadout_turns_under_way", "Turns that this node is at.", prometheus.GaugeValue)
	turnsWaiting = newState("loadout_turns_waiting", "Turns that wait for a place on this node.", prometheus.GaugeValue)
	runsRunning  = newState("loadout_runs_under_way", "Pieces of code of skills that run on this node.", prometheus.GaugeValue)
	runsWaiting  = newState("loadout_runs_waiting", "Pieces of code that wait for a place on this node.", prometheus.GaugeValue)
	dbOpen       = newState("loadout_db_connections", "Connections to the database that are open.", prometheus.GaugeValue, "pool")
	dbInUse      = newState("loadout_db_connections_in_use", "Connections to the database that are in use.", prometheus.GaugeValue, "pool")
	dbWaits      = newState("loadout_db_waits_total", "How often something waited for a connection.", prometheus.CounterValue, "pool")
	dbWaited     = newState("loadout_db_wait_seconds_total", "For how long all that waited for a connection did so.", prometheus.CounterValue, "pool")
	busHealthy   = newState("loadout_bus_healthy", "Whether notes of other nodes arrive.", prometheus.GaugeValue)
	diskSpace    = newState("loadout_disk_free_bytes", "What is free on the disk of the data directory.", prometheus.GaugeValue)
)

// Describe implements [prometheus.Collector].
func (state) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []stateMetric{turnsRunning, turnsWaiting, runsRunning, runsWaiting, dbOpen, dbInUse, dbWaits, dbWaited, busHealthy, diskSpace} {
		out <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (s state) Collect(out chan<- prometheus.Metric) {
	tell := func(m stateMetric, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
	}
	running, waiting := s.h.chat.Turns()
	tell(turnsRunning, float64(running))
	tell(turnsWaiting, float64(waiting))
	running, waiting = s.h.runs.State()
	tell(runsRunning, float64(running))
	tell(runsWaiting, float64(waiting))
	pools := s.h.db.Pools()
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		tellPool(tell, pool, pools[pool])
	}
	healthy := 0.0
	if s.h.bus.Healthy() == nil {
		healthy = 1
	}
	tell(busHealthy, healthy)
	if free, known := s.h.free(s.h.opts.Data); known {
		tell(diskSpace, float64(free))
	}
}

func tellPool(tell func(stateMetric, float64, ...string), pool string, st sql.DBStats) {
	tell(dbOpen, float64(st.OpenConnections), pool)
	tell(dbInUse, float64(st.InUse), pool)
	tell(dbWaits, float64(st.WaitCount), pool)
	tell(dbWaited, st.WaitDuration.Seconds(), pool)
}
