package presence

import (
	"fmt"
	"strconv"

	"github.com/loadout-dev/loadout/internal/kernelfile"
	"github.com/loadout-dev/loadout/internal/procstat"
)

// terminalName returns the name of the controlling terminal, or "" if there is
// none or its name is unknown.
func terminalName() string {
	stat, err := kernelfile.ReadFile("/proc/self/stat")
	if err != nil {
		return ""
	}
	fields := procstat.Fields(string(stat))
	if len(fields) < 5 {
		return ""
	}
	device, _ := strconv.ParseUint(fields[4], 10, 32) // field 7 of proc_pid_stat(5)
	return deviceName(device)
}

// deviceName returns the name of the terminal with the given device number,
// which is encoded as in proc_pid_stat(5). The kernel's devices.txt lists the
// major numbers.
func deviceName(device uint64) string {
	major, minor := device>>8&0xfff, device>>12&0xfff00|device&0xff
	switch {
	case major >= 136 && major <= 143:
		return fmt.Sprintf("/dev/pts/%d", (major-136)<<20|minor)
	case major == 4 && minor < 64:
		return fmt.Sprintf("/dev/tty%d", minor)
	case major == 4:
		return fmt.Sprintf("/dev/ttyS%d", minor-64)
	}
	return ""
}
