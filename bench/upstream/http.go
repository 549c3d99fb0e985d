//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// freePorts returns n different TCP ports on which nothing listens.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// connectHTTP starts the program and waits until something listens at its URL. Messages are sent
// with the streamable HTTP transport.
func (w *way) connectHTTP() error {
	if err := w.cmd.Start(); err != nil {
		return err
	}
	host := strings.TrimPrefix(w.url, "http://")
	host, _, _ = strings.Cut(host, "/")
	for end := time.Now().Add(answerTimeout); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", host)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("connect to %s: %w", w.url, err)
		}
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: answerTimeout}
	w.hangUp = client.CloseIdleConnections
	session, initialized := "", false // set by the response to the first message
	w.send = func(line []byte) error {
		req, err := http.NewRequest(http.MethodPost, w.url, bytes.NewReader(line))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		if initialized {
			req.Header.Set("MCP-Protocol-Version", protocolVersion)
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("unexpected status %s: %.500s", res.Status, body)
		}
		if !initialized {
			session, initialized = res.Header.Get("Mcp-Session-Id"), true
		}
		w.deliverBody(body, res.Header.Get("Content-Type"))
		return nil
	}
	return nil
}

// deliverBody delivers the messages of a response: one JSON document, or server-sent events.
func (w *way) deliverBody(body []byte, contentType string) {
	if !strings.HasPrefix(contentType, "text/event-stream") {
		w.deliverAnswer(body)
		return
	}
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			w.deliverAnswer(data)
		}
	}
}
