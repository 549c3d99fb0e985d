//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// turnTimes holds times measured from sending a turn's message.
type turnTimes struct {
	accepted time.Duration // response to the message
	first    time.Duration // first event from the model: text or a tool call
	end      time.Duration
}

// measureChats measures conversations, first one at a time, then all concurrently. The demo
// model responds immediately, so the times are those of the hub. In each turn, the model
// searches for a skill with a tool and reports the result.
func (b *bench) measureChats() error {
	var all []*chat
	for i := range b.chats {
		c, err := b.startChat(b.tokens[i%len(b.tokens)])
		if err != nil {
			return err
		}
		defer c.close()
		all = append(all, c)
	}
	var table measure.Table
	row := func(name string, baseline *measure.Row) *measure.Row {
		return table.Row(measure.Row{Name: name, Unit: "ms", Baseline: baseline})
	}
	cold := row("first turn of a user, which reads all visible skills: end", nil)
	accepted := row("baseline: a message is stored", nil)
	first, end := row("one at a time: first event of the model", accepted), row("one at a time: end of the turn", accepted)
	for pass := range 2 {
		for _, c := range all {
			s, err := c.sendMessage(b)
			if err != nil {
				return err
			}
			if pass == 0 {
				cold.AddTime(s.end)
				continue
			}
			accepted.AddTime(s.accepted)
			first.AddTime(s.first)
			end.AddTime(s.end)
		}
	}
	many := fmt.Sprintf("%d concurrent", len(all))
	rows := map[string]*measure.Row{}
	for _, q := range []string{"p50", "p95"} {
		rows["first "+q] = row(many+": first event of the model, "+q, first)
		rows["end "+q] = row(many+": end of the turn, "+q, end)
	}
	rate := table.Row(measure.Row{Name: many + ": turns", Unit: "per second"})
	each := table.Row(measure.Row{Name: many + ": CPU time of the node per turn", Unit: "ms"})
	peak := int64(0)
	for round := range b.rounds + 1 {
		start, cpu := time.Now(), measure.CPUOf(b.node.pid())
		times, err := b.sendToAll(all)
		if err != nil {
			return err
		}
		if round == 0 {
			continue
		}
		took := time.Since(start)
		var firsts, ends []float64
		for _, s := range times {
			firsts, ends = append(firsts, s.first.Seconds()*1e3), append(ends, s.end.Seconds()*1e3)
		}
		for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95} {
			rows["first "+name].Add(measure.Quantile(firsts, q))
			rows["end "+name].Add(measure.Quantile(ends, q))
		}
		rate.Add(float64(len(all)) / took.Seconds())
		each.AddTime((measure.CPUOf(b.node.pid()) - cpu) / time.Duration(len(all)))
		if m, err := measure.MemoryOf(b.node.pid()); err == nil {
			peak = max(peak, m.Resident)
		}
	}
	fmt.Print("Conversations:\n\n")
	table.Print(os.Stdout)
	fmt.Printf("\nResident memory of the node with %d open conversations: %s MB.\n", len(all), measure.FormatNumber(float64(peak)/1e6))
	return nil
}

// sendToAll runs one turn in every conversation concurrently.
func (b *bench) sendToAll(all []*chat) ([]turnTimes, error) {
	out, errs := make([]turnTimes, len(all)), make([]error, len(all))
	var talking sync.WaitGroup
	for i, c := range all {
		talking.Go(func() { out[i], errs[i] = c.sendMessage(b) })
	}
	talking.Wait()
	return out, errors.Join(errs...)
}

// chat is a client's connection to a conversation and its event stream.
type chat struct {
	token, url string
	events     *bufio.Reader
	body       io.Closer
}

func (b *bench) startChat(token string) (*chat, error) {
	data, _, err := b.send(token, "POST", b.node.url+"/api/v1/sessions", "application/json", strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	_, id, _ := strings.Cut(string(data), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	c := &chat{token: token, url: b.node.url + "/api/v1/sessions/" + id}
	req, err := http.NewRequest("GET", c.url+"/events", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("watch conversation %s: status %s", id, res.Status)
	}
	c.events, c.body = bufio.NewReader(res.Body), res.Body
	return c, nil
}

func (c *chat) close() { c.body.Close() }

// sendMessage sends a message and waits until the turn has finished.
func (c *chat) sendMessage(b *bench) (s turnTimes, err error) {
	start := time.Now()
	sent := make(chan error, 1)
	go func() {
		_, took, err := b.send(c.token, "POST", c.url+"/messages", "application/json", strings.NewReader(`{"text":"hello there"}`))
		s.accepted = took
		sent <- err
	}()
	for {
		line, err := c.events.ReadString('\n')
		if err != nil {
			return s, errors.Join(err, <-sent)
		}
		switch strings.TrimSpace(line) {
		case "event: text", "event: tool_call":
			if s.first == 0 {
				s.first = time.Since(start)
			}
		case "event: ended":
			s.end = time.Since(start)
			return s, <-sent
		case "event: problem", "event: bye":
			line, _ = c.events.ReadString('\n')
			return s, errors.Join(errors.New(line), <-sent)
		}
	}
}
