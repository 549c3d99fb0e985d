//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// bench is a hub on one database, and what is measured of it.
type bench struct {
	size
	program, home, database string
	tokens                  []string // of users
	admin                   string
	node                    *node
	client                  *http.Client
	again                   atomic.Int64 // uploads that had to be sent again
}

func (b *bench) run(name, skills string) (err error) {
	if err := os.MkdirAll(b.home, 0o700); err != nil {
		return err
	}
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.chats + 50}, Timeout: 10 * time.Minute}
	defer b.client.CloseIdleConnections()
	if err := b.settle(); err != nil {
		return err
	}
	if b.node, err = b.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.node.stop()) }()
	empty, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	took, err := b.upload(skills)
	if err != nil {
		return err
	}
	if err := b.node.stop(); err != nil { // and is measured without what uploads left
		return err
	}
	if b.node, err = b.start(); err != nil {
		return err
	}
	fmt.Printf("\n%s: %d skills were uploaded by %d clients in %s s, %s a second; %d were sent again, as the database was busy.\n\n", name, b.skills, uploads,
		measure.Number(took.Seconds()), measure.Number(float64(b.skills)/took.Seconds()), b.again.Load())
	if err := b.look(); err != nil {
		return err
	}
	looked, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	if err := b.talk(); err != nil {
		return err
	}
	talked, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	fmt.Println()
	measure.Markdown(os.Stdout, [][]string{
		{"memory of the node", "resident", "of these its own", "most so far"},
		inMB("empty, idle", empty), inMB("all looked at", looked), inMB("behind the conversations", talked),
	})
	return nil
}

func inMB(name string, m measure.Memory) []string {
	out := []string{name}
	for _, n := range []int64{m.Resident, m.Anonymous, m.Peak} {
		out = append(out, measure.Number(float64(n)/1e6)+" MB")
	}
	return out
}

// send sends a request with a token, reads the answer, and says how long that took. An
// answer other than 2xx is a [*refusal].
func (b *bench) send(token, method, url, kind string, body io.Reader) ([]byte, time.Duration, error) {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	start := time.Now()
	res, err := b.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	took := time.Since(start)
	if err == nil && res.StatusCode/100 != 2 {
		err = &refusal{res.StatusCode, fmt.Sprintf("%s %s: %s: %.300s", method, req.URL.Path, res.Status, data)}
	}
	return data, took, err
}

// refusal is an answer that is not the one that was wanted.
type refusal struct {
	status int
	says   string
}

func (r *refusal) Error() string { return r.says }
