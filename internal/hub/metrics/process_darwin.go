package metrics

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readProcess omits the memory of the process, which only cgo can read.
func readProcess() processValues {
	v := processValues{}
	if p, err := unix.SysctlKinfoProc("kern.proc.pid", os.Getpid()); err == nil {
		v["process_start_time_seconds"] = float64(p.Proc.P_starttime.Nano() / 1e9)
	}
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) == nil {
		v["process_cpu_seconds_total"] = time.Duration(usage.Stime.Nano() + usage.Utime.Nano()).Seconds()
	}
	if dir, err := os.Open("/dev/fd"); err == nil {
		// ReadDir would fail, because it calls stat for each file.
		if names, err := dir.Readdirnames(0); err == nil {
			v["process_open_fds"] = float64(len(names) - 1) // without dir
		}
		dir.Close()
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		v["process_max_fds"] = float64(limit.Cur)
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) == nil {
		v["process_virtual_memory_max_bytes"] = float64(limit.Cur)
	}
	return v
}
