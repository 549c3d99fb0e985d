//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// opens runs a command in a terminal with the user's files.
func (p *getter) opens(columns int, args ...string) *pane {
	p.Helper()
	return openTerminal(p.T, columns, p.home, []string{"TMPDIR=" + p.tmp, "GIT_CONFIG_NOSYSTEM=1"}, args...)
}

// team creates a directory with skills to choose from.
func (p *getter) team() {
	p.writes("team/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDF files, fills in their forms, merges and splits them. Use when somebody hands you a PDF.\n---\nRun scripts/fill.py.\n")
	p.writes("team/pdf/scripts/fill.py", "print('fill')\n")
	p.writes("team/tides/SKILL.md", plainSkill("tides", "Look it up."))
	p.writes("team/notes/SKILL.md", plainSkill("notes", "Write."))
}

// The user chooses from a list, sees the plan, and confirms it. An update shows its plan
// and prompts as well.
func TestAddScreen(t *testing.T) {
	for _, columns := range []int{80, 40} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			p := newGetter(t)
			p.team()
			at := p.opens(columns, "add", "./team")
			at.shows("Which skills?")
			at.types("9", "Enter")
			at.shows("9 is not in the list.")
			at.types("2-3", "Enter")
			at.shows("[y/N]")
			at.types("y", "Enter")
			at.goldenAs(fmt.Sprintf("add-%d", columns), "left with 0")
			if p.file("pdf/SKILL.md") == "" || p.file("tides/SKILL.md") == "" || p.file("notes/SKILL.md") != "" {
				t.Errorf("there is %v", p.skills())
			}

			p.writes("team/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDF files.\nallowed-tools: Bash(curl:*)\n---\nRun scripts/fill.py.\nAsk before you send anything.\n")
			at = p.opens(columns, "update")
			at.shows("[y/N]")
			at.types("n", "Enter")
			at.goldenAs(fmt.Sprintf("update-%d", columns), "left with 3")
			if strings.Contains(p.file("pdf/SKILL.md"), "curl") {
				t.Error("it was updated although the user said no")
			}
			p.writes(".loadout/skills/tides/SKILL.md", plainSkill("tides", "Mine."))
			p.writes("team/tides/SKILL.md", plainSkill("tides", "Theirs."))
			at = p.opens(columns, "update", "--check")
			at.goldenAs(fmt.Sprintf("check-%d", columns), "left with 1")
		})
	}
}

// goldenAs waits for the end, and compares the screen with testdata/screen, ignoring the
// home directory.
func (p *pane) goldenAs(name, end string) {
	p.Helper()
	got := strings.ReplaceAll(p.ends(end), p.home, "/home/me")
	path := filepath.Join("testdata", "screen", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			p.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		p.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		p.Errorf("%s is another:\n%s", name, diff)
	}
}

// If the user interrupts or chooses nothing, there is no further prompt and nothing is
// installed.
func TestInterruptedAddScreen(t *testing.T) {
	for keys, want := range map[string]string{"C-c": "left with 130", "C-d": "left with 3", "Enter": "left with 3"} {
		t.Run(keys, func(t *testing.T) {
			p := newGetter(t)
			p.team()
			at := p.opens(80, "add", "./team")
			at.shows("Which skills?")
			at.types("", keys)
			at.ends(want)
			if got := p.skills(); len(got) > 0 {
				t.Errorf("there is %v", got)
			}
		})
	}
}

// slowArchive serves a skill with one large file whose second half waits.
func slowArchive(t *testing.T) (url string, goOn func()) {
	var b bytes.Buffer
	zw, _ := gzip.NewWriterLevel(&b, gzip.NoCompression)
	tw := tar.NewWriter(zw)
	for name, text := range map[string]string{"tides/SKILL.md": plainSkill("tides", "Look it up."), "tides/data.txt": strings.Repeat("0123456789abcde\n", 100_000)} {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	half, wait := b.Len()/2, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
		w.Write(b.Bytes()[:half])
		w.(http.Flusher).Flush()
		select {
		case <-wait:
			w.Write(b.Bytes()[half:])
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/skills.tar.gz", func() { close(wait) }
}

// A long download shows its progress on one line, which is removed at the end. Ctrl-C
// during the download changes nothing.
func TestSlowDownloadScreen(t *testing.T) {
	for _, columns := range []int{80, 40} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			p := newGetter(t)
			url, goOn := slowArchive(t)
			at := p.opens(columns, "add", url, "--yes")
			at.shows("downloading: ")
			goOn()
			if end := at.ends("left with 0"); strings.Contains(end, "downloading") || !strings.Contains(end, "Added 1 skill") {
				t.Errorf("at the end there is\n%s", end)
			}

			p = newGetter(t)
			url, _ = slowArchive(t)
			at = p.opens(columns, "add", url)
			at.shows("downloading: ")
			at.types("", "C-c")
			at.ends("left with 130")
			if left, err := os.ReadDir(p.tmp); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
			if got := p.tree(p.home); len(got) > 0 {
				t.Errorf("it leaves %v", got)
			}
		})
	}
}
