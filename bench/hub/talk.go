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

// spoken is what a turn took, from when it was asked for.
type spoken struct {
	taken time.Duration // until that was answered
	word  time.Duration // until the first event of the model came: words, or a call
	end   time.Duration
}

// talk measures conversations on the demonstration, which answers at once, so that what
// they take is the hub's: one after the other, and all at once. In a turn it searches for
// a skill once, by a tool, and then says that it found none, or one.
func (b *bench) talk() error {
	var all []*chat
	for i := range b.chats {
		c, err := b.begin(b.tokens[i%len(b.tokens)])
		if err != nil {
			return err
		}
		defer c.close()
		all = append(all, c)
	}
	var table measure.Table
	row := func(name string, limit *measure.Row) *measure.Row {
		return table.Row(measure.Row{Name: name, Unit: "ms", Limit: limit})
	}
	cold := row("a user's first turn, which reads all that he reaches: it is over", nil)
	taken := row("limit: a message is taken, which is kept at once", nil)
	word, end := row("one at a time: the first event of the model", taken), row("one at a time: the turn is over", taken)
	for pass := range 2 {
		for _, c := range all {
			s, err := c.say(b)
			if err != nil {
				return err
			}
			if pass == 0 {
				cold.AddTime(s.end)
				continue
			}
			taken.AddTime(s.taken)
			word.AddTime(s.word)
			end.AddTime(s.end)
		}
	}
	word.Goal = 5
	many := fmt.Sprintf("%d at once", len(all))
	rows := map[string]*measure.Row{}
	for _, q := range []string{"p50", "p95"} {
		rows["word "+q] = row(many+": the first event of the model, "+q, word)
		rows["end "+q] = row(many+": the turn is over, "+q, end)
	}
	rate := table.Row(measure.Row{Name: many + ": turns", Unit: "a second"})
	each := table.Row(measure.Row{Name: many + ": a turn, CPU time of the node", Unit: "ms"})
	peak := int64(0)
	for round := range b.rounds + 1 {
		start, cpu := time.Now(), measure.CPUOf(b.node.pid())
		spoke, err := b.allAtOnce(all)
		if err != nil {
			return err
		}
		if round == 0 {
			continue
		}
		took := time.Since(start)
		var words, ends []float64
		for _, s := range spoke {
			words, ends = append(words, s.word.Seconds()*1e3), append(ends, s.end.Seconds()*1e3)
		}
		for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95} {
			rows["word "+name].Add(measure.Quantile(words, q))
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
	fmt.Printf("\nWith %d conversations open the node has %s MB.\n", len(all), measure.Number(float64(peak)/1e6))
	return nil
}

func (b *bench) allAtOnce(all []*chat) ([]spoken, error) {
	out, errs := make([]spoken, len(all)), make([]error, len(all))
	var talking sync.WaitGroup
	for i, c := range all {
		talking.Go(func() { out[i], errs[i] = c.say(b) })
	}
	talking.Wait()
	return out, errors.Join(errs...)
}

// chat is a conversation that is watched.
type chat struct {
	token, url string
	events     *bufio.Reader
	body       io.Closer
}

func (b *bench) begin(token string) (*chat, error) {
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
		return nil, fmt.Errorf("watch %s: %s", id, res.Status)
	}
	c.events, c.body = bufio.NewReader(res.Body), res.Body
	return c, nil
}

func (c *chat) close() { c.body.Close() }

// say says something, and waits until the turn is over.
func (c *chat) say(b *bench) (s spoken, err error) {
	start := time.Now()
	asked := make(chan error, 1)
	go func() {
		_, took, err := b.send(c.token, "POST", c.url+"/messages", "application/json", strings.NewReader(`{"text":"hello there"}`))
		s.taken = took
		asked <- err
	}()
	for {
		line, err := c.events.ReadString('\n')
		if err != nil {
			return s, errors.Join(err, <-asked)
		}
		switch strings.TrimSpace(line) {
		case "event: text", "event: tool_call":
			if s.word == 0 {
				s.word = time.Since(start)
			}
		case "event: ended":
			s.end = time.Since(start)
			return s, <-asked
		case "event: problem", "event: bye":
			line, _ = c.events.ReadString('\n')
			return s, errors.Join(errors.New(line), <-asked)
		}
	}
}
