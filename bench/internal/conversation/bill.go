package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// The prompt cache of a vendor: what was not at the same place in the request before
// is written to it, the rest is read.
const (
	write = 1.25
	read  = 0.1
)

// Bill is what requests come to.
type Bill struct {
	Requests int
	Tokens   int     // of all prompts together
	Cost     float64 // in tokens at the price of one that is neither read nor written
	// Rewritten are the tokens that were written again although the request before had
	// as many in their place.
	Rewritten int
}

// Meter reads requests, counting each text once.
type Meter struct {
	count Count
	known map[string]int // tokens of blocks
}

// NewMeter returns a meter that counts tokens in one way.
func NewMeter(count Count) *Meter { return &Meter{count, map[string]int{}} }

// Bill is what the requests of one conversation come to: of each, what the one before
// began with as well, block by block in the order tools, system, messages, is read, and
// the rest is written.
func (m *Meter) Bill(bodies [][]byte) (Bill, error) {
	var b Bill
	var before []string
	for i, body := range bodies {
		blocks, err := prompt(body)
		if err != nil {
			return b, fmt.Errorf("request %d: %w", i+1, err)
		}
		same := 0
		for same < min(len(blocks), len(before)) && blocks[same] == before[same] {
			same++
		}
		cached, fresh, lost := m.sum(blocks[:same]), m.sum(blocks[same:]), m.sum(before[same:])
		b.Requests++
		b.Tokens += cached + fresh
		b.Cost += read*float64(cached) + write*float64(fresh)
		b.Rewritten += min(lost, fresh)
		before = blocks
	}
	return b, nil
}

func (m *Meter) sum(blocks []string) int {
	n := 0
	for _, b := range blocks {
		tokens, ok := m.known[b]
		if !ok {
			tokens = m.tokens(b)
			m.known[b] = tokens
		}
		n += tokens
	}
	return n
}

// tokens are those of the texts in a block: names, descriptions, schemas, arguments,
// words. What a vendor puts around them is not known, and left out.
func (m *Meter) tokens(block string) int {
	_, data, _ := bytes.Cut([]byte(block), []byte(" "))
	var b struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
		Input       json.RawMessage `json:"input"`
		Text        string          `json:"text"`
		Content     []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		panic(err) // it was read as JSON before
	}
	n := m.count(b.Name) + m.count(b.Description) + m.count(string(b.Schema)) + m.count(string(b.Input)) + m.count(b.Text)
	for _, c := range b.Content {
		n += m.count(c.Text)
	}
	return n
}

// prompt are the blocks of a request in the order in which the vendor keeps them, each
// behind the role that says it, without the marks for the cache.
func prompt(body []byte) ([]string, error) {
	var r struct {
		Tools    []json.RawMessage `json:"tools"`
		System   []json.RawMessage `json:"system"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	var out []string
	add := func(role string, blocks []json.RawMessage) error {
		for _, b := range blocks {
			plain, err := unmark(b)
			if err != nil {
				return err
			}
			out = append(out, role+" "+string(plain))
		}
		return nil
	}
	err := errors.Join(add("tool", r.Tools), add("system", r.System))
	for _, m := range r.Messages {
		err = errors.Join(err, add(m.Role, m.Content))
	}
	return out, err
}

// unmark takes the mark for the cache out of a block.
func unmark(block []byte) ([]byte, error) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	block = bytes.Replace(block, []byte(mark+","), nil, 1)
	block = bytes.Replace(block, []byte(","+mark), nil, 1)
	if bytes.Contains(block, []byte(`"cache_control":`)) {
		return nil, fmt.Errorf("a mark for the cache in another form: %.300s", block)
	}
	return block, nil
}
