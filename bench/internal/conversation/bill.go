package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Prices of tokens with a prompt cache, relative to those without one. A block is read from the
// cache if the previous request had it in the same position; otherwise it is written.
const (
	writePrice = 1.25
	readPrice  = 0.1
)

// Bill is the cost of one or more requests.
type Bill struct {
	Requests int
	Tokens   int     // sum over all prompts
	Cost     float64 // in tokens at the uncached price
	// Rewritten is the number of tokens written to the cache because they replaced others.
	Rewritten int
}

// Meter computes bills. It caches the token count of each block.
type Meter struct {
	count Count
	known map[string]int // token counts by block
}

// NewMeter returns a Meter that counts tokens with the given function.
func NewMeter(count Count) *Meter { return &Meter{count, map[string]int{}} }

// Bill returns the cost of the requests of one conversation. It compares each request with the
// previous one block by block, in the order tools, system, messages. It counts the common
// prefix as read from the cache, and the rest as written to it.
func (m *Meter) Bill(bodies [][]byte) (Bill, error) {
	var b Bill
	var before []string
	for i, body := range bodies {
		blocks, err := promptBlocks(body)
		if err != nil {
			return b, fmt.Errorf("parse request %d: %w", i+1, err)
		}
		same := 0
		for same < min(len(blocks), len(before)) && blocks[same] == before[same] {
			same++
		}
		cached, fresh, lost := m.sumTokens(blocks[:same]), m.sumTokens(blocks[same:]), m.sumTokens(before[same:])
		b.Requests++
		b.Tokens += cached + fresh
		b.Cost += readPrice*float64(cached) + writePrice*float64(fresh)
		b.Rewritten += min(lost, fresh)
		before = blocks
	}
	return b, nil
}

func (m *Meter) sumTokens(blocks []string) int {
	n := 0
	for _, b := range blocks {
		tokens, ok := m.known[b]
		if !ok {
			tokens = m.countTokens(b)
			m.known[b] = tokens
		}
		n += tokens
	}
	return n
}

// countTokens counts the tokens of a block's strings: names, descriptions,
// schemas, arguments and content. It does not count the vendor's framing, which
// is unknown.
func (m *Meter) countTokens(block string) int {
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
		panic(err) // promptBlocks has already parsed it
	}
	n := m.count(b.Name) + m.count(b.Description) + m.count(string(b.Schema)) + m.count(string(b.Input)) + m.count(b.Text)
	for _, c := range b.Content {
		n += m.count(c.Text)
	}
	return n
}

// promptBlocks returns the blocks of a request in cache order. Each is prefixed with its role
// and has no cache_control.
func promptBlocks(body []byte) ([]string, error) {
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
			plain, err := removeCacheControl(b)
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

// removeCacheControl removes the cache_control field from a block.
func removeCacheControl(block []byte) ([]byte, error) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	block = bytes.Replace(block, []byte(mark+","), nil, 1)
	block = bytes.Replace(block, []byte(","+mark), nil, 1)
	if bytes.Contains(block, []byte(`"cache_control":`)) {
		return nil, fmt.Errorf("unexpected cache_control: %.300s", block)
	}
	return block, nil
}
