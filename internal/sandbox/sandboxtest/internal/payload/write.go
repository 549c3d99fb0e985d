//go:build linux

package main

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

func appendTo(t *tally) {
	for _, p := range t.args {
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err == nil {
			_, err = f.WriteString("\n# by " + t.mark + "\n")
			f.Close()
		}
		t.try(p, err)
	}
}

func changeSkill(t *tally) {
	dir := os.Getenv("LOADOUT_SKILL")
	doc := filepath.Join(dir, "SKILL.md")
	t.try("append", write(doc, os.O_APPEND))
	t.try("chmod", os.Chmod(doc, 0o666))
	t.try("write", write(doc, os.O_TRUNC))
	other := filepath.Join(dir, t.mark)
	t.try("create", write(other, os.O_CREATE))
	t.try("rename over", os.Rename(other, doc))
	in := filepath.Join(workDir(), "SKILL.md")
	if write(in, os.O_CREATE) == nil {
		t.try("rename from work", os.Rename(in, doc))
	}
	t.try("remount", unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	t.try("mount over", unix.Mount(workDir(), dir, "", unix.MS_BIND, ""))
	t.try("rename the tree", os.Rename(dir, dir+"-away"))
	t.try("truncate", os.Truncate(doc, 0))
}

func write(p string, how int) error {
	f, err := os.OpenFile(p, os.O_WRONLY|how, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("changed")
	return err
}

// plantSymlink creates symlinks. Its arguments are a host file and a host
// directory.
func plantSymlink(t *tally) {
	os.WriteFile(filepath.Join(outDir(), "harmless"), []byte("harmless"), 0o644)
	t.try("link to a file", os.Symlink(t.args[0], filepath.Join(outDir(), "report.txt")))
	t.try("link to a directory", os.Symlink(t.args[1], filepath.Join(outDir(), "reports")))
}

// replaceOut replaces the collected directory with a symlink.
func replaceOut(t *tally) {
	dir := outDir()
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Symlink(t.args[0], dir)
	}
	t.try("link for /work/out", err)
}

// swapLinks alternately replaces a file and a directory with symlinks while the
// host collects files.
func swapLinks(t *tally) {
	file, dir := filepath.Join(outDir(), "report.txt"), filepath.Join(outDir(), "reports")
	os.MkdirAll(filepath.Join(workDir(), "dir"), 0o755)
	os.WriteFile(filepath.Join(workDir(), "dir", filepath.Base(t.args[0])), []byte("harmless"), 0o644)
	os.WriteFile(filepath.Join(workDir(), "file"), []byte("harmless"), 0o644)
	os.Symlink(t.args[0], filepath.Join(workDir(), "file-link"))
	os.Symlink(filepath.Dir(t.args[0]), filepath.Join(workDir(), "dir-link"))
	os.Rename(filepath.Join(workDir(), "file"), file)
	os.Rename(filepath.Join(workDir(), "dir"), dir)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, filepath.Join(workDir(), "file-link"), unix.RENAME_EXCHANGE)
		unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, filepath.Join(workDir(), "dir-link"), unix.RENAME_EXCHANGE)
	}
}

func plantHardLink(t *tally) {
	to := filepath.Join(outDir(), "linked.txt")
	t.try("link", os.Link(t.args[0], to))
	t.try("show", printFile(to))
}

func plantSetuid(t *tally) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		self, err = os.ReadFile(filepath.Join(os.Getenv("LOADOUT_SKILL"), "payload"))
	}
	p := filepath.Join(outDir(), t.mark)
	if err == nil {
		err = os.WriteFile(p, self, 0o755)
	}
	if err == nil {
		err = unix.Chmod(p, 0o6755)
	}
	t.try("chmod 6755", err)
}

func makeDevice(t *tally) {
	for what, mode := range map[string]uint32{"block": unix.S_IFBLK, "char": unix.S_IFCHR} {
		dev := int(unix.Mkdev(8, 0))
		if what == "char" {
			dev = int(unix.Mkdev(1, 1)) // /dev/mem
		}
		p := filepath.Join(workDir(), t.mark+what)
		t.try("mknod "+what, unix.Mknod(p, mode|0o666, dev))
		os.Remove(p)
	}
}

func plantFIFO(t *tally) {
	os.WriteFile(filepath.Join(outDir(), "harmless"), []byte("harmless"), 0o644)
	t.try("mkfifo", unix.Mkfifo(filepath.Join(outDir(), "a.txt"), 0o666))
}
