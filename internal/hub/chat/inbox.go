package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// InputKind distinguishes messages, commands and notes in the inbox.
type InputKind string

// Input kinds. All except messages are commands.
const (
	MessageInput InputKind = "message"
	LoadInput    InputKind = "load"
	UnloadInput  InputKind = "unload"
	CompactInput InputKind = "compact"
	SwitchInput  InputKind = "branch" // continue after an earlier step

	// The following kinds are notes for the running turn.
	cancelNote InputKind = "cancel"
	answerNote InputKind = "answer" // an approval request was resolved
	seenNote   InputKind = "seen"   // a client received a request
)

// isNote reports whether an input is for the running turn and does not start a
// new one.
func (k InputKind) isNote() bool { return k == cancelNote || k == answerNote || k == seenNote }

// input is an entry in the inbox.
type input struct {
	seq  int64
	Kind InputKind `json:"-"`
	// Scopes are the scopes of the sign-in or token that sent the input.
	Scopes       string                `json:"scopes,omitempty"`
	Token        string                `json:"token,omitempty"` // ID of the API token, if any
	Text         string                `json:"text,omitempty"`
	Skill        string                `json:"skill,omitempty"`
	Images       []llm.Image           `json:"images,omitempty"` // without their content
	Retention    session.RetentionMode `json:"keep,omitempty"`
	SetRetention bool                  `json:"set,omitempty"` // whether to also shorten a longer retention
	Cascade      bool                  `json:"cascade,omitempty"`
	Approval     string                `json:"ask,omitempty"`   // ID of the approval request that a note is about
	Model        string                `json:"model,omitempty"` // ID of the conversation's Model when it was sent
	// After is the step after which the conversation continues. 0 means that it
	// starts again, and nil that it continues after its last step.
	After *int64 `json:"after,omitempty"`
}

// Message is a user's message to a conversation.
type Message struct {
	Text string
	// Images are files of the conversation that are sent to the model as images, up to
	// [MaxImages].
	Images []ImageRef
	// Skill is the skill that the user names at the start of the message; Text is
	// the rest of the message. If Skill is "", the model chooses skills.
	Skill string
	// Key identifies the message, so that the client can send it again without
	// adding it twice. It has at most [MaxKey] bytes and is unique per user and
	// conversation. "" means that there is no key.
	Key string
	// After is the last step of an earlier turn, after which the message continues
	// the conversation on a new branch; 0 starts again. nil means the last step when
	// the turn starts.
	After *int64
}

// SendMessage adds a message to a conversation's inbox and returns the message's
// number, which [Event.Input] of its events also contains. It does not wait for
// the turn. It fails with [ErrQueueFull] if [MaxQueued] inputs are waiting, with
// [ErrKeyUsed] if a different message was sent with the key, and with a
// [*quota.ExceededError] if the owner of the conversation may not store the
// message.
func (e *Engine) SendMessage(ctx context.Context, p account.Principal, id string, m Message) (int64, error) {
	switch {
	case m.Text == "" && m.Skill == "" && len(m.Images) == 0:
		return 0, fmt.Errorf("message: %w: missing text", ErrInvalid)
	case len(m.Text)+len(m.Skill) > MaxText:
		return 0, fmt.Errorf("message: %w: too long (%d bytes, limit %d)", ErrInvalid, len(m.Text)+len(m.Skill), MaxText)
	case !utf8.ValidString(m.Text) || !utf8.ValidString(m.Skill):
		return 0, fmt.Errorf("message: %w: not UTF-8", ErrInvalid)
	case len(m.Key) > MaxKey || !utf8.ValidString(m.Key):
		return 0, fmt.Errorf("message: %w: key must be UTF-8 of at most %d bytes, got %d bytes", ErrInvalid, MaxKey, len(m.Key))
	}
	if m.Key == "" {
		in, err := e.newMessage(ctx, p, id, m)
		if err != nil {
			return 0, err
		}
		return e.submit(ctx, p, id, in, nil)
	}
	return e.sendOnce(ctx, p, id, m)
}

func (e *Engine) newMessage(ctx context.Context, p account.Principal, id string, m Message) (in input, err error) {
	in = input{Kind: MessageInput, Text: m.Text, Skill: m.Skill, After: m.After}
	if len(m.Images) > 0 {
		in.Images, err = e.readImages(ctx, p, id, m.Images)
	}
	return in, err
}

// sendOnce sends a message unless the user has already sent it with the same key.
// It returns the number of the message. It looks for the key first, because files may
// have changed since the message was sent.
func (e *Engine) sendOnce(ctx context.Context, p account.Principal, id string, m Message) (int64, error) {
	s := store.SentMessage{Session: id, Principal: string(p.User), Label: m.Key, Digest: m.digest()}
	if seq, err := e.findSentMessage(ctx, p, s); !errors.Is(err, store.ErrNotFound) {
		return seq, err
	}
	in, err := e.newMessage(ctx, p, id, m)
	if err != nil {
		return 0, err
	}
	seq, err := e.submit(ctx, p, id, in, func(c *conversationTx, seq int64) error {
		s.Input = seq
		return c.SentMessages.Add(ctx, s)
	})
	if errors.Is(err, store.ErrExists) { // a concurrent call sent it
		return e.findSentMessage(ctx, p, s)
	}
	return seq, err
}

// findSentMessage returns the number of the message that was sent with a key. It
// fails with [store.ErrNotFound] if there is none.
func (e *Engine) findSentMessage(ctx context.Context, p account.Principal, s store.SentMessage) (int64, error) {
	before, err := e.db.SentMessages.Get(ctx, s.Session, s.Principal, s.Label)
	if err != nil {
		return 0, err
	}
	if _, err := e.authorize(ctx, p, account.SessionWrite, s.Session); err != nil {
		return 0, err
	}
	if before.Digest != s.Digest {
		return 0, fmt.Errorf("send message: %w", ErrKeyUsed)
	}
	return before.Input, nil
}

// digest returns a hash of the message without its key.
func (m Message) digest() string {
	text := fmt.Appendf(nil, "%q %q", m.Text, m.Skill)
	if m.After != nil {
		text = fmt.Appendf(text, " %d", *m.After)
	}
	for _, i := range m.Images {
		text = fmt.Appendf(text, " %q %q", i.Path, i.SHA256)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Compact adds a command to the inbox that replaces the preceding messages with a
// summary; see [agent.Agent.Compact]. It returns the number of the command.
func (e *Engine) Compact(ctx context.Context, p account.Principal, id string) (int64, error) {
	return e.submit(ctx, p, id, input{Kind: CompactInput}, nil)
}

// Cancel cancels the running turn and the waiting inputs, if there are any. It
// does not wait for the turn to end.
func (e *Engine) Cancel(ctx context.Context, p account.Principal, id string) error {
	if _, err := e.authorize(ctx, p, account.SessionStop, id); err != nil {
		return err
	}
	_, err := e.enqueue(ctx, id, input{Kind: cancelNote}, func(c *conversationTx, _ int64) error {
		return c.Audit.Append(ctx, auditRecord(p.User, "session.cancel", id, nil))
	})
	return err
}

// submit authorizes an input, adds it to the inbox and records it in the audit
// log. If fn is not nil, submit calls it in the same transaction.
func (e *Engine) submit(ctx context.Context, p account.Principal, id string, in input, fn func(c *conversationTx, seq int64) error) (int64, error) {
	s, err := e.authorize(ctx, p, account.SessionWrite, id)
	if err != nil {
		return 0, err
	}
	if in.After != nil {
		st, err := readState(s)
		if err != nil {
			return 0, err
		}
		if err := e.checkBranch(ctx, id, *in.After, st.ended()); err != nil {
			return 0, err
		}
	}
	in.Scopes, in.Token = p.Scopes.String(), p.Token
	return e.enqueue(ctx, id, in, func(c *conversationTx, seq int64) error {
		if fn != nil {
			if err := fn(c, seq); err != nil {
				return err
			}
		}
		return c.Audit.Append(ctx, auditRecord(p.User, "session."+string(in.Kind), id, nil))
	})
}

// enqueue adds an input to the inbox and calls fn in the same transaction. If
// no node holds the conversation's lease, the transaction also acquires it for
// this node, so that some node processes the input. If no other input waits,
// the transaction then also takes the input, which saves a separate transaction
// before the turn.
func (e *Engine) enqueue(ctx context.Context, id string, in input, fn func(c *conversationTx, seq int64) error) (int64, error) {
	if !e.addWorker() {
		return 0, ErrClosed
	}
	var (
		seq   int64
		lease *store.Lease
		first *job
	)
	err := e.update(ctx, id, func(c *conversationTx) (err error) {
		lease, first = nil, nil
		// Acquire the lease first, as workers do, to avoid a deadlock.
		switch taken, err := c.Leases.Acquire(ctx, id, e.node, e.opts.Lease); {
		case errors.Is(err, store.ErrLeaseHeld): // its holder processes the input
		case err != nil:
			return err
		default:
			lease = &taken
		}
		if seq, first, err = c.addInput(ctx, in, lease != nil); err != nil {
			return err
		}
		return fn(c, seq)
	})
	if err != nil || lease == nil {
		e.removeWorker()
	} else {
		e.startWorker(id, *lease, first)
	}
	if err != nil {
		return 0, fmt.Errorf("submit %s to conversation %q: %w", in.Kind, id, err)
	}
	return seq, nil
}

// addInput adds an input to the inbox and publishes a [MessageReceived] event. If
// take is set and nothing else waits or runs, it also takes the input and returns
// its job. The caller must then hold the lease.
func (c *conversationTx) addInput(ctx context.Context, in input, take bool) (int64, *job, error) {
	s, st, err := c.state(ctx)
	if err != nil {
		return 0, nil, err
	}
	take = take && !in.Kind.isNote() && !st.Running && st.Wanted == st.Taken
	if in.seq, err = c.appendInput(ctx, s, st, in, take); err != nil || !take {
		return in.seq, nil, err
	}
	in.Model = st.Model // as stored
	return in.seq, &job{input: in, owner: account.UserID(s.Owner), session: s}, nil
}

// notifyTurn adds a note for the running turn to the inbox. It does nothing if no
// turn is running.
func (c *conversationTx) notifyTurn(ctx context.Context, kind InputKind, about string) error {
	s, st, err := c.state(ctx)
	if err == nil && st.Running {
		_, err = c.appendInput(ctx, s, st, input{Kind: kind, Approval: about}, false)
	}
	return err
}

// appendInput adds an input to the inbox. If take is set, it also takes the
// input; in that case, no other input may be waiting.
func (c *conversationTx) appendInput(ctx context.Context, s store.Session, st state, in input, take bool) (int64, error) {
	if n := st.Wanted - st.Taken; n >= maxNotes || !in.Kind.isNote() && n >= MaxQueued {
		return 0, ErrQueueFull
	}
	if !in.Kind.isNote() {
		in.Model = st.Model
	}
	data, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	if !in.Kind.isNote() { // stored in the inbox and in the event stream
		if err := c.measure(ctx, s.Owner); err != nil {
			return 0, err
		}
		if err := c.reserve(ctx, 2*int64(len(data))); err != nil {
			return 0, err
		}
	}
	if st.Wanted, err = c.appendEvents(ctx, inboxStream(c.id), store.Event{Kind: string(in.Kind), Data: data}); err != nil {
		return 0, err
	}
	if take {
		st.Taken, st.Running, st.Tries = st.Wanted, true, 0
	}
	if in.Kind == MessageInput {
		s.Archived, s.LastMessage = false, time.Now()
		if s.Title == "" && c.titles {
			if err := c.setMessageTitle(ctx, &s, in); err != nil {
				return 0, err
			}
		}
	}
	if err := c.setState(ctx, s, st); err != nil || in.Kind.isNote() {
		return st.Wanted, err
	}
	events := []eventRow{{Event: Event{Type: MessageReceived, Input: st.Wanted, Kind: in.Kind, Text: in.Text, Skill: in.Skill, Images: in.Images, After: in.After}}}
	if take {
		events = append(events, eventRow{Event: Event{Type: TurnStarted, Input: st.Wanted}})
	}
	return st.Wanted, c.publish(ctx, events...)
}

// readInputs returns the inputs in the inbox after the given number.
func readInputs(ctx context.Context, from store.Events, id string, after int64) ([]input, error) {
	rows, err := from.Read(ctx, inboxStream(id), after, store.MaxRead)
	if err != nil {
		return nil, err
	}
	out := make([]input, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Data, &out[i]); err != nil {
			return nil, fmt.Errorf("read input %d of conversation %q: %w", r.Seq, id, store.ErrCorrupt)
		}
		out[i].seq, out[i].Kind = r.Seq, InputKind(r.Kind)
	}
	return out, nil
}
