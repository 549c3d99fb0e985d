package presence

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// lookupProcess looks up a process in a snapshot of all processes. The snapshot
// does not include their arguments, so a client that an interpreter runs is not
// recognized.
func lookupProcess(pid int) (Process, bool) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return Process{}, false
	}
	defer windows.CloseHandle(snapshot)
	e := windows.ProcessEntry32{}
	e.Size = uint32(unsafe.Sizeof(e))
	for err = windows.Process32First(snapshot, &e); err == nil; err = windows.Process32Next(snapshot, &e) {
		if int(e.ProcessID) == pid {
			return Process{PID: pid, Parent: int(e.ParentProcessID), Name: windows.UTF16ToString(e.ExeFile[:])}, true
		}
	}
	return Process{}, false
}

// OpenTerminal opens the console, regardless of standard input and output. The
// caller must close both files.
func OpenTerminal() (in, out *os.File, err error) {
	if in, err = os.OpenFile("CONIN$", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile("CONOUT$", os.O_RDWR, 0); err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// controllingTerminal opens the console. A client may start its commands with a
// hidden console, which cannot be distinguished from a visible one.
func controllingTerminal() string {
	in, out, err := OpenTerminal()
	if err != nil {
		return ""
	}
	in.Close()
	out.Close()
	return "console"
}
