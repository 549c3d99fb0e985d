package serverstate

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/procstat"
)

// machineID identifies the current boot of the system and the PID namespace.
var machineID = sync.OnceValue(func() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + " " + space
})

// startTime returns a process's start time. It returns false if the process
// does not exist.
func startTime(pid int) (string, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	state, start := procstat.Parse(string(stat))
	if state == "" || state == "Z" || state == "X" {
		return "", false
	}
	return start, true
}
