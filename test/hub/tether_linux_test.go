package hub_test

import "syscall"

// tether has a process end with the tests, however these end.
func tether() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
