//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// bench measures a hub with one database.
type bench struct {
	size
	program, home, database string
	redis                   string   // URL; "" for a single node
	tokens, userIDs         []string // one per user
	groupIDs                []string
	admin                   string
	node                    *node
	client                  *http.Client
	retries                 atomic.Int64 // number of repeated uploads
}

func (b *bench) run(name, skills string) (err error) {
	if err := os.MkdirAll(b.home, 0o700); err != nil {
		return err
	}
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.chats + 50}, Timeout: 10 * time.Minute}
	defer b.client.CloseIdleConnections()
	if err := b.createUsers(); err != nil {
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
	if err := b.node.stop(); err != nil { // restart, so that garbage from the uploads is not measured
		return err
	}
	if b.node, err = b.start(); err != nil {
		return err
	}
	fmt.Printf("\n%s: %d skills uploaded by %d clients in %s s, %s per second; %d retries because the database was busy.\n\n", name, b.skills, uploads,
		measure.FormatNumber(took.Seconds()), measure.FormatNumber(float64(b.skills)/took.Seconds()), b.retries.Load())
	if err := b.measureReads(); err != nil {
		return err
	}
	afterReads, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	if err := b.measureChats(); err != nil {
		return err
	}
	afterChats, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	table := measure.Table{Name: "memory of the node"}
	addMemory(&table, "empty, idle", empty)
	addMemory(&table, "after the reads", afterReads)
	addMemory(&table, "after the conversations", afterChats)
	fmt.Println()
	table.Print(os.Stdout)
	return nil
}

// addMemory adds the memory of a node to the rows with a name, which it creates first.
func addMemory(t *measure.Table, name string, m measure.Memory) {
	for _, part := range []struct {
		name  string
		bytes int64
	}{{"resident", m.Resident}, {"anonymous", m.Anonymous}, {"peak", m.Peak}} {
		t.RowNamed(name+", "+part.name, "MB").Add(float64(part.bytes) / 1e6)
	}
}

// measureIdle starts a hub several times and measures its memory when it is idle.
func measureIdle(s size) (err error) {
	dir, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := measure.BuildLoadout(dir)
	if err != nil {
		return err
	}
	table := measure.Table{Name: "memory of the node"}
	for i := range s.rounds {
		home := filepath.Join(dir, fmt.Sprint("hub", i))
		if err := os.Mkdir(home, 0o700); err != nil {
			return err
		}
		b := &bench{size: s, program: program, home: home, database: "sqlite:" + filepath.Join(home, "hub.db")}
		n, err := b.start()
		if err != nil {
			return err
		}
		measure.WaitIdle(n.pid())
		m, err := measure.MemoryOf(n.pid())
		if err := errors.Join(err, n.stop()); err != nil {
			return err
		}
		addMemory(&table, "empty, idle", m)
	}
	fmt.Println(measure.Environment())
	fmt.Printf("\nAn empty hub with SQLite, %d starts:\n\n", s.rounds)
	table.Print(os.Stdout)
	return nil
}

// send sends a request with a token and returns the response body and the elapsed time. It
// returns a [*statusError] if the status is not 2xx.
func (b *bench) send(token, method, url, contentType string, body io.Reader) ([]byte, time.Duration, error) {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
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
		err = &statusError{res.StatusCode, fmt.Sprintf("%s %s: %s: %.300s", method, req.URL.Path, res.Status, data)}
	}
	return data, took, err
}

// statusError reports a response with a status other than 2xx.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }
