package spawn

import (
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object. Windows kills its processes when the last handle is
// closed, at the latest when this program exits.
type group struct{ job windows.Handle }

func (*group) prepare(*exec.Cmd) {}

func (g *group) started(cmd *exec.Cmd) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	var h windows.Handle
	if err == nil {
		h, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	}
	if err == nil {
		err = windows.AssignProcessToJobObject(job, h)
		windows.CloseHandle(h)
	}
	if err != nil {
		windows.CloseHandle(job)
		return err
	}
	g.job = job
	return nil
}

// terminate kills the job, because Windows has no equivalent of SIGTERM.
func (g *group) terminate(cmd *exec.Cmd) { g.kill(cmd) }

func (g *group) kill(*exec.Cmd) { windows.TerminateJobObject(g.job, 1) }

func (*group) await(cmd *exec.Cmd) (reaped bool, _ error) { return true, cmd.Wait() }

func (g *group) close() { windows.CloseHandle(g.job) }
