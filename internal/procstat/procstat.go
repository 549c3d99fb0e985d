// Package procstat reads the stat file of a process, described in
// proc_pid_stat(5).
package procstat

import "strings"

// Parse returns the state of a process, such as "R", and its start time in ticks
// since boot. Both are empty if the file is malformed. A PID and a start time
// together identify a process.
func Parse(stat string) (state, start string) {
	// The program name is in parentheses and may contain any character.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 { // fields 3 to 22
		return "", ""
	}
	return fields[0], fields[19]
}
