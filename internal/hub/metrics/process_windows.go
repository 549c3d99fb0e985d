package metrics

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32              = windows.NewLazySystemDLL("kernel32.dll")
	getProcessMemoryInfo  = kernel32.NewProc("K32GetProcessMemoryInfo")
	getProcessHandleCount = kernel32.NewProc("GetProcessHandleCount")
)

// memoryCounters is PROCESS_MEMORY_COUNTERS_EX.
type memoryCounters struct {
	size                       uint32
	pageFaultCount             uint32
	peakWorkingSetSize         uintptr
	workingSetSize             uintptr
	quotaPeakPagedPoolUsage    uintptr
	quotaPagedPoolUsage        uintptr
	quotaPeakNonPagedPoolUsage uintptr
	quotaNonPagedPoolUsage     uintptr
	pagefileUsage              uintptr
	peakPagefileUsage          uintptr
	privateUsage               uintptr
}

func readProcess() processValues {
	const maxHandles = 16 << 20 // of each process
	v := processValues{"process_max_fds": maxHandles}
	process := windows.CurrentProcess()
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(process, &created, &exited, &kernel, &user) == nil {
		v["process_start_time_seconds"] = float64(created.Nanoseconds() / int64(time.Second))
		v["process_cpu_seconds_total"] = seconds(kernel) + seconds(user)
	}
	memory := memoryCounters{size: uint32(unsafe.Sizeof(memoryCounters{}))}
	if ok, _, _ := getProcessMemoryInfo.Call(uintptr(process), uintptr(unsafe.Pointer(&memory)), unsafe.Sizeof(memory)); ok != 0 {
		v["process_virtual_memory_bytes"] = float64(memory.privateUsage)
		v["process_resident_memory_bytes"] = float64(memory.workingSetSize)
	}
	var handles uint32
	if ok, _, _ := getProcessHandleCount.Call(uintptr(process), uintptr(unsafe.Pointer(&handles))); ok != 0 {
		v["process_open_fds"] = float64(handles)
	}
	return v
}

// seconds returns a duration, which is a number of 100 ns.
func seconds(t windows.Filetime) float64 {
	return float64(uint64(t.HighDateTime)<<32+uint64(t.LowDateTime)) / 1e7
}
