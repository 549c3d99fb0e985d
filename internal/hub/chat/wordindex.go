package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// Limits of what is indexed.
const (
	maxIndexed      = 64 << 10  // characters of a message
	maxMessageWords = 128 << 10 // bytes of the distinct words of a message
	indexPage       = 100       // steps that are read at once
)

// wordIndex holds the words of steps and the last step with each word.
type wordIndex map[string]int64

// add adds the words of a step, if it is a message.
func (x wordIndex) add(row store.Event) error {
	if row.Kind != "message" {
		return nil
	}
	var s session.Event
	if err := json.Unmarshal(row.Data, &s); err != nil {
		return fmt.Errorf("read step %d of transcript: %w", row.Seq, store.ErrCorrupt)
	}
	if s.Message == nil {
		return nil
	}
	for _, w := range distinctWords(s.Message.Text) {
		x[w] = row.Seq
	}
	return nil
}

func distinctWords(text string) []string {
	seen := map[string]bool{}
	var out []string
	size := 0
	for t := range bm25.Tokens(text, maxIndexed) {
		if seen[t.Word] {
			continue
		}
		if size += len(t.Word); size > maxMessageWords {
			break
		}
		seen[t.Word] = true
		out = append(out, t.Word)
	}
	return out
}

// indexSteps adds the words of queued steps to the index.
func (c *conversationTx) indexSteps(ctx context.Context) error {
	words := wordIndex{}
	for _, row := range c.written[c.id] {
		if err := words.add(row); err != nil {
			return err
		}
	}
	return c.ConversationWords.Add(ctx, c.id, words)
}

// indexTitle replaces the words of a conversation's title in the index.
func indexTitle(ctx context.Context, t *store.Tables, id, title string) error {
	return t.ConversationWords.SetTitle(ctx, id, distinctWords(title))
}

// IndexOlder adds the words of a conversation that an older program stored to the
// index: the newest one, or the newest one that is older than before. It returns its
// ID, or "" if there is none left. If a conversation cannot be indexed, IndexOlder
// logs the error and still returns the ID, so that the caller continues with older
// conversations. A later run tries again.
func (e *Engine) IndexOlder(ctx context.Context, before string) (string, error) {
	ids, err := e.db.ConversationWords.ListUnindexed(ctx, before, 1)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	if err := e.indexAll(ctx, ids[0]); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		e.opts.Logger.Warn("couldn't index conversation", "conversation", ids[0], "error", err)
	}
	return ids[0], nil
}

// indexAll adds all words of a conversation to the index. It reads most steps before
// the transaction, so that other changes need not wait.
func (e *Engine) indexAll(ctx context.Context, id string) error {
	parts, last, err := readWords(ctx, e.db.Events, id, 0)
	damaged := errors.Is(err, store.ErrCorrupt) // the conversation cannot be opened either
	if damaged {
		e.opts.Logger.Warn("couldn't index messages of conversation", "conversation", id, "error", err)
		parts, err = nil, nil
	}
	if err != nil {
		return err
	}
	return e.db.Tx(ctx, func(tx *store.Tx) error {
		s, err := tx.Sessions.Get(ctx, id)
		if errors.Is(err, store.ErrNotFound) { // deleted
			return nil
		}
		if err != nil {
			return err
		}
		var later []wordIndex
		if !damaged {
			if later, _, err = readWords(ctx, tx.Events, id, last); err != nil {
				return err
			}
		}
		if err := tx.ConversationWords.Clear(ctx, id); err != nil {
			return err
		}
		for _, p := range slices.Concat(parts, later) {
			if err := tx.ConversationWords.Add(ctx, id, p); err != nil {
				return err
			}
		}
		return errors.Join(indexTitle(ctx, &tx.Tables, id, s.Title), tx.ConversationWords.SetIndexed(ctx, id))
	})
}

// readWords returns the words of the steps after the given number, in parts, and the
// number of the last step.
func readWords(ctx context.Context, from store.Events, id string, after int64) ([]wordIndex, int64, error) {
	var out []wordIndex
	for {
		rows, err := from.Read(ctx, id, after, indexPage)
		if err != nil {
			return nil, 0, err
		}
		words := wordIndex{}
		for _, r := range rows {
			if err := words.add(r); err != nil {
				return nil, 0, err
			}
			after = r.Seq
		}
		out = append(out, words)
		if len(rows) < indexPage {
			return out, after, nil
		}
	}
}
