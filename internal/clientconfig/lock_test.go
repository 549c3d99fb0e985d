package clientconfig_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

const connectingVariable = "LOADOUT_TEST_CONNECT"

// TestConnectingProcess is the other process of TestProcessesShareBackup. For
// each path on its standard input, it plans an entry, waits for a line and
// writes the entry.
func TestConnectingProcess(t *testing.T) {
	if os.Getenv(connectingVariable) == "" {
		t.Skip("runs in other processes only")
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		ch, err := clientconfig.Plan(clientconfig.Target{Client: lookup(t, "cursor"), File: lines.Text()}, command)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("planned")
		lines.Scan()
		switch err := ch.Apply(); {
		case err == nil:
			fmt.Println("applied")
		case errors.Is(err, clientconfig.ErrChanged):
			fmt.Println("changed")
		default:
			fmt.Println(err)
		}
	}
}

// peer is a process that runs TestConnectingProcess.
type peer struct {
	in  io.Writer
	out *bufio.Scanner
}

func startPeer(t *testing.T) peer {
	cmd := exec.Command(os.Args[0], "-test.run=^TestConnectingProcess$")
	cmd.Env = append(os.Environ(), connectingVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return peer{in, bufio.NewScanner(out)}
}

func (p peer) say(line string) { fmt.Fprintln(p.in, line) }

func (p peer) hear() string {
	p.out.Scan()
	return p.out.Text()
}

// Two processes that connect the same client at once leave a backup from which
// an undo restores the file.
func TestProcessesShareBackup(t *testing.T) {
	peers := []peer{startPeer(t), startPeer(t)}
	dir := t.TempDir()
	for i := range 300 {
		file := filepath.Join(dir, fmt.Sprint(i))
		const text = "{ \"a\": 1 }\n"
		write(t, file, []byte(text))
		for _, p := range peers {
			p.say(file)
		}
		for _, p := range peers {
			if got := p.hear(); got != "planned" {
				t.Fatal(got)
			}
		}
		for _, p := range peers {
			p.say("go")
		}
		var results []string
		for _, p := range peers {
			results = append(results, p.hear())
		}
		if r := strings.Join(results, " "); r != "applied changed" && r != "changed applied" {
			t.Fatalf("round %d: %s", i, r)
		}
		undo(t, clientconfig.Target{Client: lookup(t, "cursor"), File: file})
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Fatalf("round %d: undo left %q, %v", i, got, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != i+1 {
			t.Fatalf("round %d: left %v", i, left)
		}
	}
}

// An undo that was planned with other backups writes nothing.
func TestUndoAfterBackupsChanged(t *testing.T) {
	target := at(t, "cursor", []byte("{ }"))
	first := connect(t, target, command)
	stale, err := clientconfig.PlanUndo(target, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(first.Backup); err != nil {
		t.Fatal(err)
	}
	if err := stale.Apply(); !errors.Is(err, clientconfig.ErrChanged) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(read(t, target.File), "loadout") {
		t.Error("the file changed")
	}
}
