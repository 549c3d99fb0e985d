//go:build unix

package storetest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverUser returns the user that runs the server if the tests run as root:
// postgres or nobody. PostgreSQL refuses to run as root.
func serverUser() (uid, gid int) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil {
			return uid, gid
		}
	}
	return 65534, 65534
}

// changeOwner makes the user that runs the server the owner of a directory.
func changeOwner(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid := serverUser()
	return os.Chown(dir, uid, gid)
}

// dropPrivileges makes a command run as the user from serverUser. It also
// detaches the command from the terminal, so that an interrupt does not stop
// the server before the tests end.
func dropPrivileges(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() != 0 {
		return
	}
	uid, gid := serverUser()
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
