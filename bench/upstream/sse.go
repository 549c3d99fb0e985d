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

// overSSE starts the program and connects to its SSE endpoint once there is one.
func (w *way) overSSE() error {
	if err := w.cmd.Start(); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	var res *http.Response
	var err error
	for end := time.Now().Add(answerTime); ; time.Sleep(5 * time.Millisecond) {
		if res, err = client.Get(w.url); err == nil && res.StatusCode == http.StatusOK {
			break
		}
		if err == nil {
			res.Body.Close()
			err = fmt.Errorf("it answers %s", res.Status)
		}
		if time.Now().After(end) {
			return fmt.Errorf("connect to %s: %w", w.url, err)
		}
	}
	w.hangUp = func() { res.Body.Close(); client.CloseIdleConnections() }
	at := make(chan string, 1)
	go w.events(bufio.NewReaderSize(res.Body, 1<<20), at)
	var endpoint string
	select {
	case endpoint = <-at:
	case <-time.After(answerTime):
		return fmt.Errorf("connect to %s: it names no endpoint for messages", w.url)
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
		_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("it answers %s", res.Status)
		}
		return nil
	}
	return nil
}

// events hands on what a stream says, first where messages go.
func (w *way) events(in *bufio.Reader, at chan<- string) {
	kind := ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			w.lost()
			return
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "event":
			kind = value
		case name == "data" && kind == "endpoint":
			at <- value
		case name == "data":
			w.got([]byte(value))
		}
	}
}
