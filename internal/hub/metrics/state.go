package metrics

import (
	"database/sql"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// State collects metrics that are computed when Prometheus reads them.
type State struct {
	// Turns and Runs count operations; SignIns counts checks of passwords.
	Turns, Runs, SignIns func() (running, waiting int)

	Pools    func() map[string]sql.DBStats
	Bus      func() error                      // returns nil if the bus is healthy
	DiskFree func() (bytes uint64, known bool) // free space for the data directory
}

var _ prometheus.Collector = State{}

// stateMetric describes a metric of [State].
type stateMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newState(name, help string, kind prometheus.ValueType, labels ...string) stateMetric {
	return stateMetric{prometheus.NewDesc(name, help, labels, nil), kind}
}

var (
	turnsRunning = newState("loadout_turns_under_way", "Running turns of conversations.", prometheus.GaugeValue)
	turnsWaiting = newState("loadout_turns_waiting", "Turns waiting for a slot.", prometheus.GaugeValue)
	runsRunning  = newState("loadout_runs_under_way", "Running code of skills.", prometheus.GaugeValue)
	runsWaiting  = newState("loadout_runs_waiting", "Code waiting for a slot.", prometheus.GaugeValue)
	signInsRun   = newState("loadout_sign_ins_under_way", "Passwords being checked.", prometheus.GaugeValue)
	signInsWait  = newState("loadout_sign_ins_waiting", "Sign-ins waiting for their password check.", prometheus.GaugeValue)
	dbOpen       = newState("loadout_db_connections", "Open database connections.", prometheus.GaugeValue, "pool")
	dbInUse      = newState("loadout_db_connections_in_use", "Database connections in use.", prometheus.GaugeValue, "pool")
	dbWaits      = newState("loadout_db_waits_total", "Waits for a database connection.", prometheus.CounterValue, "pool")
	dbWaited     = newState("loadout_db_wait_seconds_total", "Total time spent waiting for database connections.", prometheus.CounterValue, "pool")
	busHealthy   = newState("loadout_bus_healthy", "Whether the bus between nodes is connected.", prometheus.GaugeValue)
	diskSpace    = newState("loadout_disk_free_bytes", "Free bytes on the disk of the data directory.", prometheus.GaugeValue)
)

// Describe implements [prometheus.Collector].
func (State) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []stateMetric{turnsRunning, turnsWaiting, runsRunning, runsWaiting, signInsRun, signInsWait, dbOpen, dbInUse, dbWaits, dbWaited, busHealthy, diskSpace} {
		out <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (s State) Collect(out chan<- prometheus.Metric) {
	tell := func(m stateMetric, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
	}
	running, waiting := s.Turns()
	tell(turnsRunning, float64(running))
	tell(turnsWaiting, float64(waiting))
	running, waiting = s.Runs()
	tell(runsRunning, float64(running))
	tell(runsWaiting, float64(waiting))
	running, waiting = s.SignIns()
	tell(signInsRun, float64(running))
	tell(signInsWait, float64(waiting))
	pools := s.Pools()
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		collectPool(tell, pool, pools[pool])
	}
	healthy := 0.0
	if s.Bus() == nil {
		healthy = 1
	}
	tell(busHealthy, healthy)
	if free, known := s.DiskFree(); known {
		tell(diskSpace, float64(free))
	}
}

func collectPool(emit func(stateMetric, float64, ...string), pool string, st sql.DBStats) {
	emit(dbOpen, float64(st.OpenConnections), pool)
	emit(dbInUse, float64(st.InUse), pool)
	emit(dbWaits, float64(st.WaitCount), pool)
	emit(dbWaited, st.WaitDuration.Seconds(), pool)
}
