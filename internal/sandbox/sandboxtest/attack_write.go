//go:build linux

package sandboxtest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
)

// writeAttacks returns the attacks that change protected files, and attacks on
// the collection of files.
func writeAttacks() []attack {
	view, out := []string{"filesystem"}, []string{"collect", "disk"}
	return []attack{
		{"B01", "append to ~/.bashrc", view, nil, func(x *trial) bool {
			before := x.contents(x.t, x.rc)
			x.attack("B01", x.rc)
			return x.changed(x.t, before)
		}},
		{"B02", "change its own SKILL.md", []string{"filesystem"}, nil, changesSkill},
		{"B03", "write into another skill", view, nil, func(x *trial) bool {
			before := x.contents(x.t, x.other)
			planted := filepath.Join(filepath.Dir(x.other), "run.sh")
			x.attack("B03", x.other, planted)
			_, err := os.Lstat(planted)
			return x.changed(x.t, before) || err == nil
		}},
		{"B04", "symlinks in collected files", out, nil, func(x *trial) bool {
			x.attack("B04", x.config, filepath.Dir(x.key))
			return x.collectsSecret("config", "key")
		}},
		{"B05", "hard link to a file of the host", view, nil, func(x *trial) bool {
			x.attack("B05", x.config)
			var st unix.Stat_t
			requireNoError(x.t, unix.Stat(x.config, &st))
			return st.Nlink > 1 || x.collectsSecret("config")
		}},
		{"B07", "a setuid file remains on the host", []string{"collect", "disk"}, nil, func(x *trial) bool {
			x.attack("B07")
			x.close()
			return x.setuidLeft()
		}},
		{"B08", "mknod", []string{"privileges", "syscalls"}, nil, reportsBreach("B08")},
		{"B09", "a FIFO in collected files", out, nil, func(x *trial) bool {
			x.attack("B09")
			files, err := x.collectFiles(20 * time.Second)
			if err != nil {
				x.note(err.Error())
			}
			return err != nil || files["out/harmless"] != "harmless"
		}},
	}
}

func (x *trial) outputHasText(res *execute.Result, s string) bool {
	return bytes.Contains(res.Stdout, []byte(s))
}

// changesSkill lets the payload change its skill, and uses a second command to
// report whether the skill changed.
func changesSkill(x *trial) bool {
	_, breach := x.attack("B02")
	res := x.exec(nil, "read", mountpoint.Skill+"/SKILL.md")
	if string(res.Stdout) != skillText {
		x.note("SKILL.md is now " + string(res.Stdout) + string(res.Stderr))
		return true
	}
	return breach
}

// collectsSecret collects the output files and reports whether they contain any
// of the secrets.
func (x *trial) collectsSecret(secrets ...string) bool {
	files, err := x.collectFiles(20 * time.Second)
	if err != nil {
		x.t.Errorf("collect: %v", err)
	}
	return x.containsSecret(files, secrets...)
}

// containsSecret reports whether the files contain any of the secrets.
func (x *trial) containsSecret(files map[string]string, secrets ...string) bool {
	for _, name := range secrets {
		for path, data := range files {
			if strings.Contains(data, x.secrets[name]) {
				x.note("collected as " + path)
				return true
			}
		}
	}
	return false
}

// setuidLeft reports whether a setuid file remains in a directory where a
// backend may store files.
func (x *trial) setuidLeft() bool {
	found := false
	for _, dir := range []string{x.tmp, "/dev/shm", "/var/tmp"} {
		filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrPermission) {
				return fs.SkipDir
			}
			if err == nil && strings.Contains(d.Name(), x.mark) {
				found = true
			}
			return nil
		})
	}
	return found
}
