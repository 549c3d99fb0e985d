package stage

import (
	"fmt"
	"syscall"
)

// overlayTrees are the detached mounts of an overlay's directories.
type overlayTrees struct{ lower, data int }

// openMounts opens the directories of the overlay, like [Setup.openMounts].
func (o *Overlay) openMounts() (overlayTrees, error) {
	t := overlayTrees{-1, -1}
	var err error
	if t.lower, err = openTree(o.Host); err == nil {
		err = setAttr(t.lower, attrReadOnly|attrNoSUID|attrNoDev)
	}
	if err != nil {
		return t, wrapStep(err, "mount %s", o.Host)
	}
	if t.data, err = openTree(o.Data); err == nil {
		err = setAttr(t.data, attrNoSUID|attrNoDev|attrNoExec)
	}
	return t, wrapStep(err, "mount %s", o.Data)
}

// Mount points of the overlay's directories below the new root, while it is
// mounted.
const (
	lowerPoint = "/.lower"
	dataPoint  = "/.data"
)

// mount mounts the overlay below root. If the kernel refuses, for example
// because a file system does not support overlays, mount mounts only the lower
// directory and returns the reason.
func (o *Overlay) mount(root string, t overlayTrees) (reason string, err error) {
	at := root + o.Path
	if err := makePoint(at, false); err != nil {
		return "", wrapStep(err, "make a mount point for %s", o.Path)
	}
	for _, d := range []struct {
		path string
		fd   int
	}{{root + lowerPoint, t.lower}, {root + dataPoint, t.data}} {
		if err := makePoint(d.path, false); err != nil {
			return "", wrapStep(err, "make a mount point for %s", o.Path)
		}
		if err := moveMount(d.fd, d.path); err != nil {
			return "", wrapStep(err, "mount %s", o.Path)
		}
		syscall.Close(d.fd)
	}
	// For an unprivileged user, the kernel stores the metadata of the overlay in
	// user attributes.
	options := "userxattr,lowerdir=" + root + lowerPoint + ",upperdir=" + root + dataPoint + "/upper,workdir=" + root + dataPoint + "/work"
	if err := syscall.Mount("overlay", at, "overlay", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		reason = fmt.Sprintf("cannot mount an overlay of %s: %v", o.Host, err)
		if err := bindTree(root+lowerPoint, at); err != nil {
			return "", wrapStep(err, "mount %s", o.Path)
		}
	}
	// The overlay keeps its own references, so that code has no other way to
	// the directories.
	for _, path := range []string{root + lowerPoint, root + dataPoint} {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			return "", wrapStep(err, "detach %s", path)
		}
		if err := syscall.Rmdir(path); err != nil {
			return "", wrapStep(err, "remove %s", path)
		}
	}
	return reason, nil
}

// bindTree makes the mounts at src also visible at dst.
func bindTree(src, dst string) error {
	fd, err := openTree(src)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return moveMount(fd, dst)
}
