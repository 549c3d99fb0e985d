package metrics

// processMetrics have the names and texts of Prometheus's libraries.
var processMetrics = []struct {
	name, help string
	kind       kind
}{
	{"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", counter},
	{"process_open_fds", "Number of open file descriptors.", gauge},
	{"process_max_fds", "Maximum number of open file descriptors.", gauge},
	{"process_virtual_memory_bytes", "Virtual memory size in bytes.", gauge},
	{"process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", gauge},
	{"process_resident_memory_bytes", "Resident memory size in bytes.", gauge},
	{"process_start_time_seconds", "Start time of the process since unix epoch in seconds.", gauge},
	{"process_network_receive_bytes_total", "Number of bytes received by the process over the network.", counter},
	{"process_network_transmit_bytes_total", "Number of bytes sent by the process over the network.", counter},
}

// processValues are the values of processMetrics by name. Values that the system
// does not provide are missing.
type processValues map[string]float64

// processBlocks returns the metrics of this process.
func processBlocks() []*block {
	values := readProcess()
	var blocks []*block
	for _, m := range processMetrics {
		if v, known := values[m.name]; known {
			b := newBlock(m.name, m.help, m.kind)
			b.add("", v)
			blocks = append(blocks, b)
		}
	}
	return blocks
}
