//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// connectSSE starts the program, waits until its SSE endpoint is available, and connects to it.
func (w *way) connectSSE() error {
	if err := w.cmd.Start(); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	var res *http.Response
	var err error
	for end := time.Now().Add(answerTimeout); ; time.Sleep(5 * time.Millisecond) {
		if res, err = client.Get(w.url); err == nil && res.StatusCode == http.StatusOK {
			break
		}
		if err == nil {
			res.Body.Close()
			err = fmt.Errorf("unexpected status %s", res.Status)
		}
		if time.Now().After(end) {
			return fmt.Errorf("connect to %s: %w", w.url, err)
		}
	}
	w.hangUp = func() { res.Body.Close(); client.CloseIdleConnections() }
	at := make(chan string, 1)
	go w.readEvents(bufio.NewReaderSize(res.Body, 1<<20), at)
	var endpoint string
	select {
	case endpoint = <-at:
	case <-time.After(answerTimeout):
		return fmt.Errorf("connect to %s: no endpoint event within %s", w.url, answerTimeout)
	}
	base, err := url.Parse(w.url)
	if err != nil {
		return err
	}
	to, err := base.Parse(endpoint)
	if err != nil {
		return err
	}
	w.send = func(line []byte) error {
		res, err := client.Post(to.String(), "application/json", bytes.NewReader(line))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be reused
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("unexpected status %s", res.Status)
		}
		return nil
	}
	return nil
}

// readEvents dispatches the events in a stream. It sends the address of the
// message endpoint to endpoint.
func (w *way) readEvents(in *bufio.Reader, endpoint chan<- string) {
	kind := ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			w.failRequests()
			return
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "event":
			kind = value
		case name == "data" && kind == "endpoint":
			endpoint <- value
		case name == "data":
			w.deliverAnswer([]byte(value))
		}
	}
}
