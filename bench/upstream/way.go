//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

const (
	answerTimeout   = 30 * time.Second // for one response
	protocolVersion = "2025-11-25"
)

// way is a way to call the echo tool.
type way struct {
	name string
	args []string
	env  []string
	url  string                   // of the MCP endpoint; "" for standard input and output
	call func(int) map[string]any // parameters for calling the tool of server i

	cmd     *exec.Cmd
	in      io.WriteCloser
	send    func(line []byte) error
	hangUp  func()
	mu      sync.Mutex // guards id, waiting and the order of sent messages
	id      int
	waiting map[int]chan error

	one, many, cpu, resident *measure.Row // see measureCalls
}

// start starts the program with its own home directory, connects, and calls the tool of
// server i once.
func (w *way) start(home string, i int) error {
	w.cmd = exec.Command(w.args[0], w.args[1:]...)
	w.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_DATA_HOME="+home, "XDG_CACHE_HOME="+home,
		"LOADOUT_STATE="+home+"/state", "LOADOUT_CACHE="+home+"/cache")
	w.cmd.Env = append(w.cmd.Env, w.env...)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	w.id, w.waiting = 0, map[int]chan error{}
	if w.url == "" {
		err = w.connectPipes()
	} else {
		err = w.connectHTTP()
	}
	if err != nil {
		return err
	}
	if err := w.sendRequest("initialize", map[string]any{"protocolVersion": protocolVersion, "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "bench", "version": "1"}}); err != nil {
		return err
	}
	if err := w.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")); err != nil {
		return err
	}
	err = w.callTool(i)
	for end := time.Now().Add(answerTimeout); err != nil && w.url != "" && time.Now().Before(end); err = w.callTool(i) {
		time.Sleep(5 * time.Millisecond) // a peer may respond before it has connected to its servers
	}
	return err
}

func (w *way) connectPipes() error {
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	w.send = func(line []byte) error { _, err := w.in.Write(line); return err }
	w.hangUp = func() {}
	if err := w.cmd.Start(); err != nil {
		return err
	}
	go w.readLines(bufio.NewReaderSize(out, 1<<20))
	return nil
}

func (w *way) readLines(out *bufio.Reader) {
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			w.failRequests()
			return
		}
		w.deliverAnswer(line)
	}
}

// close closes the program's input, and interrupts the program if it serves
// HTTP. If the program does not exit within ten seconds, close kills it.
func (w *way) close() {
	if w.cmd == nil || w.cmd.Process == nil {
		return
	}
	w.in.Close()
	if w.hangUp != nil {
		w.hangUp()
	}
	if w.url != "" {
		_ = w.cmd.Process.Signal(os.Interrupt)
	}
	late := time.AfterFunc(10*time.Second, func() { _ = w.cmd.Process.Kill() })
	defer late.Stop()
	_ = w.cmd.Wait()
	w.cmd = nil
}

// deliverAnswer passes a response to the pending request.
func (w *way) deliverAnswer(line []byte) {
	var m struct {
		ID     int
		Method string
		Error  json.RawMessage
		Result struct{ IsError bool }
	}
	if json.Unmarshal(line, &m) != nil || m.Method != "" {
		return
	}
	w.mu.Lock()
	c := w.waiting[m.ID]
	delete(w.waiting, m.ID)
	w.mu.Unlock()
	switch {
	case c == nil:
	case m.Error != nil || m.Result.IsError:
		c <- fmt.Errorf("server returned error: %.500s", line)
	default:
		c <- nil
	}
}

// failRequests fails all pending requests after the connection is lost.
func (w *way) failRequests() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.waiting {
		c <- io.ErrUnexpectedEOF
	}
	clear(w.waiting)
}

// callTool calls the tool of server i.
func (w *way) callTool(i int) error { return w.sendRequest("tools/call", w.call(i)) }

func (w *way) sendRequest(method string, params any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	c := make(chan error, 1)
	w.mu.Lock()
	w.id++
	w.waiting[w.id] = c
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", w.id, method, text)
	if w.url == "" {
		err = w.send(line)
	}
	w.mu.Unlock()
	if w.url != "" { // each message has its own connection
		err = w.send(line)
	}
	if err != nil {
		return err
	}
	select {
	case err := <-c:
		return err
	case <-time.After(answerTimeout):
		return context.DeadlineExceeded
	}
}

// runRound calls the tool from one caller, then four times as often from sixteen callers.
func (w *way) runRound(calls int) error {
	cpu := measure.CPUOf(w.cmd.Process.Pid)
	for range calls {
		began := time.Now()
		if err := w.callTool(0); err != nil {
			return err
		}
		w.one.AddTime(time.Since(began))
	}
	w.cpu.AddTime((measure.CPUOf(w.cmd.Process.Pid) - cpu) / time.Duration(calls))
	const callers = 16
	each := calls * 4 / callers
	began := time.Now()
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range each {
				if errs[i] = w.callTool(0); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	w.many.Add(float64(callers*each) / time.Since(began).Seconds())
	return errors.Join(errs...)
}
