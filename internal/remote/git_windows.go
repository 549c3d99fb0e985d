package remote

import (
	"io"
	"io/fs"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// detach prepares a command to start without a console. When the context is
// done, the command and all its children are killed.
func detach(cmd *exec.Cmd) {
	const noWindow = 0x08000000
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: noWindow}
	cmd.Cancel = func() error {
		_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
		return cmd.Process.Kill()
	}
}

// job is a Windows job object. Its processes are killed when its last handle is
// closed, which happens at the latest when this program exits.
type job windows.Handle

func (j job) Close() error { return windows.CloseHandle(windows.Handle(j)) }

// startSupervised starts a command and adds it to a job. The command's children
// join the same job.
func startSupervised(cmd *exec.Cmd, memory int64) (io.Closer, error) {
	j, err := newJob(memory)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		j.Close()
		return nil, err
	}
	if err := j.add(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		j.Close()
		return nil, err
	}
	return j, nil
}

func newJob(memory int64) (job, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY,
		},
		ProcessMemoryLimit: uintptr(memory),
	}
	_, err = windows.SetInformationJobObject(h, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(h)
		return 0, err
	}
	return job(h), nil
}

func (j job) add(pid int) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(h)
	return windows.AssignProcessToJobObject(windows.Handle(j), h)
}

// isOwnFile always returns true, because on Windows the temporary directory
// belongs to the user.
func isOwnFile(fs.FileInfo) bool { return true }
