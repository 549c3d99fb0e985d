//go:build linux

package sandboxtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// orphanVariable is the environment variable that marks a host process that
// will be killed.
const orphanVariable = "LOADOUT_TEST_ORPHAN"

// TestOrphans tests that no process of a sandbox outlives the program that
// started it, even if that program was killed. It runs the calling test again
// in a second process, which is killed in this call.
func TestOrphans(t *testing.T, b sandbox.Backend) {
	if mark := os.Getenv(orphanVariable); mark != "" {
		runAbandoned(t, b, mark)
		return
	}
	if err := newScene(t).findOrphans(t); err != nil {
		t.Error(err)
	}
}

// runAbandoned starts a sandbox and waits to be killed.
func runAbandoned(t *testing.T, b sandbox.Backend, mark string) {
	k := &check{ctx: context.Background(), b: b, mark: mark, spec: newSpec(t)}
	requireNoError(t, k.start())
	p, err := k.box.Exec(k.ctx, payloadCmd("sleep", mark))
	requireNoError(t, err)
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	requireNoError(t, err)
	_, err = k.run(nil, "E11") // leaves a process behind if possible
	fmt.Printf("\nSTARTED %q %v\n", line, err)
	time.Sleep(20 * time.Second)
}

func (s *scene) findOrphans(t *testing.T) error {
	mark := "orphan-" + randomWord()
	defer sweep(mark)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
	cmd.Env = append(os.Environ(), orphanVariable+"="+mark, payloadVariable+"="+s.bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer stop.Stop()
	var stderr strings.Builder
	started := false
	for in := bufio.NewScanner(out); !started && in.Scan(); {
		fmt.Fprintln(&stderr, in.Text())
		started = strings.HasPrefix(in.Text(), "STARTED \"asleep\\n\"")
	}
	before := processesWithMark(mark)
	cmd.Process.Kill()
	cmd.Wait()
	if !started || len(before) == 0 {
		return fmt.Errorf("sandboxed processes did not start (found %v):\n%s", before, stderr.String())
	}
	if !poll(maxLifetime/4, func() bool { return len(processesWithMark(mark)) == 0 }) {
		return fmt.Errorf("processes still running after their host was killed: %v of %v", processesWithMark(mark), before)
	}
	return nil
}
