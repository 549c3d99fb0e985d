package docs_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHubAPI(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("commands are those of a shell of Linux")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	c := newConsole(t)
	url := serveHub(t, c)
	p := readPage(t, "docs/hub.md")
	for _, b := range p.blocks {
		if b.info != "curl" {
			continue
		}
		text := slices.Clone(b.text)
		for i := range text {
			text[i] = strings.ReplaceAll(text[i], "http://127.0.0.1:8484", url)
		}
		c.session(t, p, block{info: b.info, text: text, first: b.first})
	}
}

// serveHub starts a hub in the home directory of a console and returns its address.
func serveHub(t *testing.T, c *console) string {
	t.Helper()
	cmd := exec.Command(built, "serve", "--addr", "127.0.0.1:0", "--json")
	cmd.Env = []string{"HOME=" + c.home, "PATH=/usr/local/bin:/usr/bin:/bin"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		cmd.Process.Kill()
		cmd.Wait()
	})
	var greeting struct{ URL string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&greeting); err != nil {
		t.Fatalf("the hub says nothing: %v", err)
	}
	return greeting.URL
}

// The page names only existing variables.
func TestHubVariables(t *testing.T) {
	data, err := os.ReadFile("hub.md")
	if err != nil {
		t.Fatal(err)
	}
	known := append(variables(), "LOADOUT_HUB", "LOADOUT_HUB_TOKEN") // these are read by commands that connect to a hub
	for _, name := range regexp.MustCompile(`\bLOADOUT_[A-Z_]+`).FindAllString(string(data), -1) {
		if !slices.Contains(known, name) {
			t.Errorf("no variable %s", name)
		}
	}
}
