package presence

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/kernelfile"
)

func lookupProcess(pid int) (Process, bool) {
	stat, err := kernelfile.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, false
	}
	p, ok := parseStat(stat)
	if !ok {
		return Process{}, false
	}
	p.PID = pid
	p.Path, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	p.Path = strings.TrimSuffix(p.Path, " (deleted)") // after an update
	if args, err := kernelfile.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(args) > 0 {
		p.Args = strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")
	}
	return p, true
}

// parseStat parses the description of a process in the format of
// proc_pid_stat(5).
func parseStat(stat []byte) (Process, bool) {
	// The program name is in parentheses and may contain any character.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 2 {
		return Process{}, false
	}
	parent, err := strconv.Atoi(fields[1]) // field 4
	return Process{Name: string(stat[open+1 : end]), Parent: parent}, err == nil
}
