// Package procstat reads the stat file of a process, described in
// proc_pid_stat(5).
package procstat

import "strings"

// Parse returns the state of a process, such as "R", and its start time in ticks
// since boot. Both are empty if the file is malformed. A PID and a start time
// together identify a process.
func Parse(stat string) (state, start string) {
	fields := Fields(stat)
	if len(fields) < 20 { // fields 3 to 22
		return "", ""
	}
	return fields[0], fields[19]
}

// Fields returns the fields of the file, beginning with the third one, the state.
// It skips the PID and the name of the program, which is in parentheses and may
// contain any character.
func Fields(stat string) []string {
	return strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
}
