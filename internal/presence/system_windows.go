package presence

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// lookupProcess reads the snapshot of all processes. It does not know their
// arguments, so it does not recognize a client that an interpreter runs.
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

// controllingTerminal opens the console's input. A client may start its
// commands with a hidden console, which cannot be told from a visible one.
func controllingTerminal() string {
	name, err := windows.UTF16PtrFromString("CONIN$")
	if err != nil {
		return ""
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return ""
	}
	windows.CloseHandle(h)
	return "console"
}
