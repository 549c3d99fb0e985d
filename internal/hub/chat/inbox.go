package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// InputKind is the kind of an input to a conversation.
type InputKind string

// The kinds of inputs. All but messages are commands.
const (
	MessageInput InputKind = "message"
	LoadInput    InputKind = "load"
	UnloadInput  InputKind = "unload"
	CompactInput InputKind = "compact"

	// Notes to the running turn.
	cancelNote InputKind = "cancel"
	answerNote InputKind = "answer" // an approval request was resolved
	seenNote   InputKind = "seen"   // a client received a request
)

// isNote reports whether an input has no turn of its own.
func (k InputKind) isNote() bool { return k == cancelNote || k == answerNote || k == seenNote }

// input is an entry of the inbox.
type input struct {
	seq  int64
	Kind InputKind `json:"-"`
	// Scopes are the scopes of the session or token that sent it.
	Scopes       string                `json:"scopes,omitempty"`
	Token        string                `json:"token,omitempty"` // ID of the API token, if any
	Text         string                `json:"text,omitempty"`
	Skill        string                `json:"skill,omitempty"`
	Retention    session.RetentionMode `json:"keep,omitempty"`
	SetRetention bool                  `json:"set,omitempty"` // replaces the retention, even a longer one
	Cascade      bool                  `json:"cascade,omitempty"`
	Approval     string                `json:"ask,omitempty"` // approval request of a note
}

// Message is a message of a user.
type Message struct {
	Text string
	// Skill is the skill that the user names for the message; Text is then what
	// follows its name. "" lets the model choose.
	Skill string
	// Key is the client's name for the message, at most [MaxKey] bytes. Sending
	// it again with the same key, user and conversation does not add a second
	// message. "" is no key.
	Key string
}

// SendMessage adds a message to the inbox of a conversation and returns its
// number, which its events carry. It does not wait for the turn. It returns
// [ErrQueueFull] if [MaxQueued] inputs wait, and [ErrKeyUsed] if a different
// message has the key.
func (e *Engine) SendMessage(ctx context.Context, p account.Principal, id string, m Message) (int64, error) {
	switch {
	case m.Text == "" && m.Skill == "":
		return 0, fmt.Errorf("message: %w: empty", ErrInvalid)
	case len(m.Text)+len(m.Skill) > MaxText:
		return 0, fmt.Errorf("message: %w: too long (%d bytes, limit %d)", ErrInvalid, len(m.Text)+len(m.Skill), MaxText)
	case !utf8.ValidString(m.Text) || !utf8.ValidString(m.Skill):
		return 0, fmt.Errorf("message: %w: not UTF-8", ErrInvalid)
	case len(m.Key) > MaxKey || !utf8.ValidString(m.Key):
		return 0, fmt.Errorf("message: %w: key has %d bytes (limit %d), or is not UTF-8", ErrInvalid, len(m.Key), MaxKey)
	}
	in := input{Kind: MessageInput, Text: m.Text, Skill: m.Skill}
	if m.Key == "" {
		return e.submit(ctx, p, id, in, nil)
	}
	return e.sendOnce(ctx, p, id, in, m.Key)
}

// sendOnce sends a message unless its key was sent before, and returns its
// number.
func (e *Engine) sendOnce(ctx context.Context, p account.Principal, id string, in input, key string) (int64, error) {
	s := store.SentMessage{Session: id, Principal: string(p.User), Label: key, Digest: in.digest()}
	if seq, err := e.findSentMessage(ctx, p, s); !errors.Is(err, store.ErrNotFound) {
		return seq, err
	}
	seq, err := e.submit(ctx, p, id, in, func(c *conversationTx, seq int64) error {
		s.Input = seq
		return c.SentMessages.Add(ctx, s)
	})
	if errors.Is(err, store.ErrExists) { // sent twice at the same time
		return e.findSentMessage(ctx, p, s)
	}
	return seq, err
}

// findSentMessage returns the number of the message sent with a key. It returns
// [store.ErrNotFound] if there is none.
func (e *Engine) findSentMessage(ctx context.Context, p account.Principal, s store.SentMessage) (int64, error) {
	before, err := e.db.SentMessages.Get(ctx, s.Session, s.Principal, s.Label)
	if err != nil {
		return 0, err
	}
	if _, err := e.authorize(ctx, p, account.SessionWrite, s.Session); err != nil {
		return 0, err
	}
	if before.Digest != s.Digest {
		return 0, fmt.Errorf("message: %w", ErrKeyUsed)
	}
	return before.Input, nil
}

// digest returns a hash that is equal for inputs with the same text and skill.
func (in input) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", in.Text, in.Skill))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Compact replaces the messages so far with a summary, when its turn comes: see
// [agent.Agent.Compact].
func (e *Engine) Compact(ctx context.Context, p account.Principal, id string) (int64, error) {
	return e.submit(ctx, p, id, input{Kind: CompactInput}, nil)
}

// Cancel ends the running turn and removes waiting inputs. It has no effect if
// there are none. It does not wait for the turn to end.
func (e *Engine) Cancel(ctx context.Context, p account.Principal, id string) error {
	if _, err := e.authorize(ctx, p, account.SessionStop, id); err != nil {
		return err
	}
	_, err := e.enqueue(ctx, id, input{Kind: cancelNote}, func(c *conversationTx, _ int64) error {
		return c.Audit.Append(ctx, auditRecord(p.User, "session.cancel", id, nil))
	})
	return err
}

// submit authorizes an input, enqueues it and records it in the audit log. with
// runs in the same transaction.
func (e *Engine) submit(ctx context.Context, p account.Principal, id string, in input, with func(c *conversationTx, seq int64) error) (int64, error) {
	if _, err := e.authorize(ctx, p, account.SessionWrite, id); err != nil {
		return 0, err
	}
	in.Scopes, in.Token = p.Scopes.String(), p.Token
	return e.enqueue(ctx, id, in, func(c *conversationTx, seq int64) error {
		if with != nil {
			if err := with(c, seq); err != nil {
				return err
			}
		}
		return c.Audit.Append(ctx, auditRecord(p.User, "session."+string(in.Kind), id, nil))
	})
}

// enqueue adds an input to the inbox, and runs with in the same transaction. If
// no node has the conversation, the transaction also acquires its lease for
// this node, so no input is left without a worker.
func (e *Engine) enqueue(ctx context.Context, id string, in input, with func(c *conversationTx, seq int64) error) (int64, error) {
	if !e.addWorker() {
		return 0, ErrClosed
	}
	var (
		seq   int64
		lease *store.Lease
	)
	err := e.update(ctx, id, func(c *conversationTx) (err error) {
		lease = nil
		// Acquire the lease first, as workers do, to avoid a deadlock.
		switch taken, err := c.Leases.Acquire(ctx, id, e.node, e.opts.Lease); {
		case errors.Is(err, store.ErrLeaseHeld): // its holder finds the input
		case err != nil:
			return err
		default:
			lease = &taken
		}
		if seq, err = c.addInput(ctx, in); err != nil {
			return err
		}
		return with(c, seq)
	})
	if err != nil || lease == nil {
		e.removeWorker()
	} else {
		e.startWorker(id, *lease)
	}
	if err != nil {
		return 0, fmt.Errorf("%s in conversation %q: %w", in.Kind, id, err)
	}
	return seq, nil
}

// addInput adds an input to the inbox and publishes it.
func (c *conversationTx) addInput(ctx context.Context, in input) (int64, error) {
	s, st, err := c.state(ctx)
	if err != nil {
		return 0, err
	}
	return c.appendInput(ctx, s, st, in)
}

// notifyTurn adds a note for the running turn. It does nothing if no turn runs.
func (c *conversationTx) notifyTurn(ctx context.Context, kind InputKind, about string) error {
	s, st, err := c.state(ctx)
	if err == nil && st.Running {
		_, err = c.appendInput(ctx, s, st, input{Kind: kind, Approval: about})
	}
	return err
}

func (c *conversationTx) appendInput(ctx context.Context, s store.Session, st state, in input) (int64, error) {
	if n := st.Wanted - st.Taken; n >= maxNotes || !in.Kind.isNote() && n >= MaxQueued {
		return 0, ErrQueueFull
	}
	data, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	if st.Wanted, err = c.appendEvents(ctx, inboxStream(c.id), store.Event{Kind: string(in.Kind), Data: data}); err != nil {
		return 0, err
	}
	if err := c.setState(ctx, s, st); err != nil || in.Kind.isNote() {
		return st.Wanted, err
	}
	return st.Wanted, c.publish(ctx, eventRow{Event: Event{Type: MessageReceived, Input: st.Wanted, Kind: in.Kind, Text: in.Text, Skill: in.Skill}})
}

// readInputs returns the inputs after a number.
func readInputs(ctx context.Context, from store.Events, id string, after int64) ([]input, error) {
	rows, err := from.Read(ctx, inboxStream(id), after, store.MaxRead)
	if err != nil {
		return nil, err
	}
	out := make([]input, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Data, &out[i]); err != nil {
			return nil, fmt.Errorf("input %d of conversation %q: %w", r.Seq, id, store.ErrCorrupt)
		}
		out[i].seq, out[i].Kind = r.Seq, InputKind(r.Kind)
	}
	return out, nil
}
