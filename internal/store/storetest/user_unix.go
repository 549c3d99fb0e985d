//go:build unix

package storetest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged is whom the server runs as where the tests run as root, which it
// refuses: postgres, or nobody.
func unprivileged() (uid, gid int) {
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

// giveAway gives a directory to whom the server runs as.
func giveAway(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid := unprivileged()
	return os.Chown(dir, uid, gid)
}

// lower runs a command as whom the server runs as, and apart from the terminal, so that
// an interrupt of the tests does not reach the server before they are over.
func lower(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() != 0 {
		return
	}
	uid, gid := unprivileged()
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
