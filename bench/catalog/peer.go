//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
)

// peer is another implementation that scans and loads skills. Its program is started with the
// directory as its argument. It reads commands from standard input, one a line, and answers each
// with one line: "scan" with the number of skills that it found in a new scan, and "load NAME"
// with the number of bytes of instructions.
type peer struct {
	name       string
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *bufio.Reader
	scan, load *measure.Row
}

// addPeer starts the program of a peer.
func (b *bench) addPeer(name, program string) error {
	p := &peer{name: name, cmd: exec.Command(program, b.dir)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start peer %s: %w", name, err)
	}
	p.scan = b.table.Row(measure.Row{Name: "peer " + name + ": scan", Unit: "ms", Baseline: b.parse})
	p.load = b.table.Row(measure.Row{Name: "peer " + name + ": activation", Unit: "µs", Baseline: b.body})
	b.peers = append(b.peers, p)
	return nil
}

// do sends a command and returns the number in the answer and the CPU time of the peer.
func (p *peer) do(command string) (n int, cpu time.Duration, err error) {
	before := measure.CPUOf(p.cmd.Process.Pid)
	if _, err = io.WriteString(p.in, command+"\n"); err == nil {
		var line string
		if line, err = p.out.ReadString('\n'); err == nil {
			_, err = fmt.Sscan(line, &n)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("peer %s: %s: %w", p.name, command, err)
	}
	return n, measure.CPUOf(p.cmd.Process.Pid) - before, nil
}

func (p *peer) measureScan(skills int) error {
	n, cpu, err := p.do("scan")
	if err == nil && n != skills {
		err = fmt.Errorf("peer %s found %d skills, want %d", p.name, n, skills)
	}
	p.scan.AddTime(cpu)
	return err
}

// measureLoads loads each skill once.
func (p *peer) measureLoads(skills []*catalog.Entry) error {
	var all time.Duration
	for _, e := range skills {
		n, cpu, err := p.do("load " + e.Name)
		if err == nil && n < 1000 {
			err = fmt.Errorf("peer %s loaded only %d bytes of %s", p.name, n, e.Name)
		}
		if err != nil {
			return err
		}
		all += cpu
	}
	p.load.AddTime(all / time.Duration(len(skills)))
	return nil
}

// close ends the peer by closing its standard input, and waits for its exit.
func (p *peer) close() error {
	err := p.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	return errors.Join(err, p.cmd.Wait())
}
