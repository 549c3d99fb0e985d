package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/catalog"
)

// mountDead mounts a file system at dir that answers no request until the
// returned function is called. It skips the test if that is not permitted.
func mountDead(t *testing.T, dir string) (end func()) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("needs FUSE: ", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid())
	if err := unix.Mount("test", dir, "fuse", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		unix.Close(fd)
		t.Skip("needs the right to mount: ", err)
	}
	return func() {
		unix.Close(fd) // ends blocked system calls
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
}

func TestDeadMountDoesNotStopOtherSources(t *testing.T) {
	root := tree(t, map[string]string{"own/pdf/SKILL.md": doc("pdf", ""), "mnt/": "", "more/csv/SKILL.md": doc("csv", ""), "more/mnt/": ""})
	end := mountDead(t, filepath.Join(root, "more", "mnt"))
	c := open(t,
		catalog.NewDir("more", catalog.User, filepath.Join(root, "more"), &catalog.DirOptions{MaxTime: time.Second}),
		catalog.NewDir("own", catalog.User, filepath.Join(root, "own"), nil))
	if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"pdf"}) {
		t.Errorf("skills %q", got)
	}
	if got := problemCodes(c.Snapshot()); !slices.Equal(got, []string{"more not-responding"}) {
		t.Errorf("problems %q", got)
	}
	changed := make(chan struct{}, 1)
	defer c.Subscribe(func(_, _ *catalog.Snapshot) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	end()
	// The read may have ended since.
	for slices.Contains(problemCodes(c.Snapshot()), "more not-responding") {
		<-changed
	}
}
