package metrics

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/procstat"
)

// ticks is the number of clock ticks in a second. The kernel uses this number in
// /proc on all architectures that Go supports.
const ticks = 100

func readProcess() processValues {
	v := processValues{}
	v.readStat()
	v.readFiles()
	v.readNetwork()
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		v["process_max_fds"] = float64(limit.Cur)
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) == nil {
		v["process_virtual_memory_max_bytes"] = float64(limit.Cur)
	}
	return v
}

// readStat reads /proc/self/stat, which proc_pid_stat(5) describes.
func (v processValues) readStat() {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return
	}
	fields := procstat.Fields(string(stat))
	field := func(number int) float64 { // as in the manual; the first two are before fields
		if number-3 >= len(fields) {
			return 0
		}
		n, _ := strconv.ParseFloat(fields[number-3], 64)
		return n
	}
	v["process_cpu_seconds_total"] = (field(14) + field(15)) / ticks
	v["process_virtual_memory_bytes"] = field(23)
	v["process_resident_memory_bytes"] = field(24) * float64(os.Getpagesize())
	if booted, ok := findValue("/proc/stat", "btime"); ok {
		v["process_start_time_seconds"] = booted + field(22)/ticks
	}
}

// readFiles counts open files.
func (v processValues) readFiles() {
	const dir = "/proc/self/fd"
	if info, err := os.Stat(dir); err == nil && info.Size() > 0 { // since Linux 6.2
		v["process_open_fds"] = float64(info.Size())
	} else if files, err := os.ReadDir(dir); err == nil {
		v["process_open_fds"] = float64(len(files))
	}
}

// readNetwork reads the traffic of the network namespace.
func (v processValues) readNetwork() {
	text, err := os.ReadFile("/proc/self/net/netstat")
	if err != nil {
		return
	}
	var names []string
	for line := range strings.Lines(string(text)) { // a line of names, then a line of values
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "IpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names[:min(len(names), len(fields))] {
			n, err := strconv.ParseFloat(fields[i], 64)
			switch {
			case err != nil:
			case name == "InOctets":
				v["process_network_receive_bytes_total"] = n
			case name == "OutOctets":
				v["process_network_transmit_bytes_total"] = n
			}
		}
	}
}

// findValue returns the number that follows name on a line of a file.
func findValue(file, name string) (float64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			return n, err == nil
		}
	}
	return 0, false
}
