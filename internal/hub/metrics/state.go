package metrics

import "database/sql"

// State collects metrics that are computed when Prometheus reads them.
type State struct {
	// Turns and Runs count operations; SignIns counts checks of passwords.
	Turns, Runs, SignIns func() (running, waiting int)

	Pools    func() map[string]sql.DBStats
	Bus      func() error                      // returns nil if the bus is healthy
	DiskFree func() (bytes uint64, known bool) // free space for the data directory
}

// blocks returns the metrics of the current state.
func (s *State) blocks() []*block {
	var blocks []*block
	add := func(name, help string, v float64) {
		f := newFamily(name, help, gauge)
		f.add(v)
		blocks = append(blocks, f.block())
	}
	running, waiting := s.Turns()
	add("loadout_turns_under_way", "Running turns of conversations.", float64(running))
	add("loadout_turns_waiting", "Turns waiting for a slot.", float64(waiting))
	running, waiting = s.Runs()
	add("loadout_runs_under_way", "Running code of skills.", float64(running))
	add("loadout_runs_waiting", "Code waiting for a slot.", float64(waiting))
	running, waiting = s.SignIns()
	add("loadout_sign_ins_under_way", "Passwords being checked.", float64(running))
	add("loadout_sign_ins_waiting", "Sign-ins waiting for their password check.", float64(waiting))
	healthy := 0.0
	if s.Bus() == nil {
		healthy = 1
	}
	add("loadout_bus_healthy", "Whether the bus between nodes is connected.", healthy)
	if free, known := s.DiskFree(); known {
		add("loadout_disk_free_bytes", "Free bytes on the disk of the data directory.", float64(free))
	}
	return append(blocks, poolBlocks(s.Pools())...)
}

// poolBlocks returns the metrics of connections to the database.
func poolBlocks(pools map[string]sql.DBStats) []*block {
	open := newFamily("loadout_db_connections", "Open database connections.", gauge, "pool")
	inUse := newFamily("loadout_db_connections_in_use", "Database connections in use.", gauge, "pool")
	waits := newFamily("loadout_db_waits_total", "Waits for a database connection.", counter, "pool")
	waited := newFamily("loadout_db_wait_seconds_total", "Total time spent waiting for database connections.", counter, "pool")
	for pool, st := range pools {
		open.add(float64(st.OpenConnections), pool)
		inUse.add(float64(st.InUse), pool)
		waits.add(float64(st.WaitCount), pool)
		waited.add(st.WaitDuration.Seconds(), pool)
	}
	return []*block{open.block(), inUse.block(), waits.block(), waited.block()}
}
