package skill_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/skill"
)

// TestArchiveAttacks reads 24 archives that attack extractors: each is refused or has
// its dangerous entries removed. Nothing is unpacked.
func TestArchiveAttacks(t *testing.T) {
	bomb := archive(t, skillMD, entry{name: "pdf/bomb", content: strings.Repeat("\x00", 15<<20)})
	deep := entry{name: "pdf/" + strings.Repeat("d/", 500) + "x"}
	for _, tt := range []struct {
		id, what string
		archive  []byte
	}{
		{"F01", "../../x", archive(t, skillMD, entry{name: "../../x"})},
		{"F02", "an absolute path", archive(t, skillMD, entry{name: "/tmp/x"})},
		{"F03", `..\x`, archive(t, skillMD, entry{name: `..\x`})},
		{"F04", "a sibling with the same prefix", archive(t, skillMD, entry{name: "../pdf-evil/x"})},
		{"F05", "a link", archive(t, skillMD, entry{name: "pdf/l", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777})},
		{"F06", "a link to a directory, and a file through it", archive(t, skillMD, entry{name: "pdf/l", content: "/tmp", mode: fs.ModeSymlink | 0o777}, entry{name: "pdf/l/x", content: "x"})},
		{"F07", "a bomb", bomb},
		{"F08", "entries that overlap", overlapping(t)},
		{"F09", "a size that lies", archive(t, skillMD, entry{name: "pdf/b", content: noise(1 << 16), change: lies})},
		{"F10", "5000 entries", archive(t, many(5000)...)},
		{"F11", "a part of 300 characters", archive(t, skillMD, entry{name: "pdf/" + strings.Repeat("a", 300)})},
		{"F12", "a path of 5000 characters", archive(t, skillMD, entry{name: "pdf/" + strings.Repeat("a/", 2500) + "x"})},
		{"F13", "500 directories in one another", archive(t, skillMD, deep)},
		{"F14", "SKILL.md twice", archive(t, skillMD, skillMD)},
		{"F15", "skill.md and SKILL.md", archive(t, skillMD, entry{name: "pdf/skill.md"})},
		{"F16", "NUL in a name", archive(t, skillMD, entry{name: "pdf/a\x00b"})},
		{"F17", "a name that is shown backwards", archive(t, skillMD, entry{name: "pdf/a\u202egpj.exe"})},
		{"F18", "a line end and colours in a name", archive(t, skillMD, entry{name: "pdf/a\n\x1b[31mb"})},
		{"F19", "setuid", archive(t, skillMD, entry{name: "pdf/s", content: "x", mode: fs.ModeSetuid | 0o755})},
		{"F20", "a device", archive(t, skillMD, entry{name: "pdf/d", mode: fs.ModeDevice | 0o666})},
		{"F21", "a pipe", archive(t, skillMD, entry{name: "pdf/p", mode: fs.ModeNamedPipe | 0o666})},
		{"F22", "a file, and a directory of its name", archive(t, skillMD, entry{name: "pdf/a"}, entry{name: "pdf/a/b"})},
		{"F23", "a name that is a device elsewhere", archive(t, skillMD, entry{name: "pdf/NUL.txt"})},
		{"F24", "an archive that is cut off", archive(t, skillMD)[:60]},
	} {
		t.Run(tt.id+" "+tt.what, func(t *testing.T) {
			b, err := skill.OpenZIP(bytes.NewReader(tt.archive), int64(len(tt.archive)), "pdf.zip", skill.Limits{})
			if err != nil {
				if _, ok := errors.AsType[*skill.RefusedError](err); !ok {
					t.Errorf("not refused with a reason: %v", err)
				}
				return
			}
			defer b.Close()
			switch tt.id {
			case "F09": // detected when it is read; at most the checked size is returned
				if data, err := fs.ReadFile(b.FS, "b"); err == nil || len(data) > 10 {
					t.Errorf("read %d bytes, %v", len(data), err)
				}
				return
			case "F19":
			default:
				t.Fatal("accepted")
			}
			if fi, err := fs.Stat(b.FS, "s"); err != nil || fi.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
				t.Errorf("mode %v, %v", fi.Mode(), err)
			}
		})
	}
}
