package presence

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

func lookupProcess(pid int) (Process, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return Process{}, false
	}
	p := Process{PID: pid, Parent: int(k.Eproc.Ppid), Name: unix.ByteSliceToString(k.Proc.P_comm[:])}
	// The arguments are only readable for processes of the same user.
	if raw, err := unix.SysctlRaw("kern.procargs2", pid); err == nil {
		p.Path, p.Args = parseProcArgs(raw)
	}
	return p, true
}

// parseProcArgs parses the output of sysctl(3) for KERN_PROCARGS2: the number
// of arguments, the path of the executable and the arguments.
func parseProcArgs(raw []byte) (path string, args []string) {
	if len(raw) < 4 {
		return "", nil
	}
	n := int(binary.NativeEndian.Uint32(raw))
	parts := bytes.Split(raw[4:], []byte{0})
	path = string(parts[0])
	parts = parts[1:]
	for len(parts) > 0 && len(parts[0]) == 0 { // padding behind the path
		parts = parts[1:]
	}
	for _, a := range parts[:min(max(n, 0), len(parts))] {
		args = append(args, string(a))
	}
	return path, args
}
