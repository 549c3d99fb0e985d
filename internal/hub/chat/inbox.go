package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// InputKind is what is wanted of a conversation.
type InputKind string

// The kinds of inputs. Those that are no message are commands.
const (
	MessageInput InputKind = "message"
	LoadInput    InputKind = "load"
	UnloadInput  InputKind = "unload"
	CompactInput InputKind = "compact"

	// Notes to the turn under way.
	cancelNote InputKind = "cancel"
	answerNote InputKind = "answer" // a question was settled
	seenNote   InputKind = "seen"   // a client has a request
)

// note reports whether an input is no turn of its own.
func (k InputKind) note() bool { return k == cancelNote || k == answerNote || k == seenNote }

// input is one thing that is wanted, as the inbox keeps it.
type input struct {
	seq  int64
	Kind InputKind `json:"-"`
	// Scopes are those of the way in by which it came.
	Scopes  string       `json:"scopes,omitempty"`
	Token   string       `json:"token,omitempty"` // the ID of the API token that is that way
	Text    string       `json:"text,omitempty"`
	Skill   string       `json:"skill,omitempty"`
	Keep    session.Keep `json:"keep,omitempty"`
	Set     bool         `json:"set,omitempty"` // exactly that long
	Cascade bool         `json:"cascade,omitempty"`
	Ask     string       `json:"ask,omitempty"` // of a note
}

// Message is what a person says.
type Message struct {
	Text string
	// Skill is one that the person says is to be used; then the text is what follows
	// its name. "" leaves it to the model.
	Skill string
	// Key is the client's own name for the message, of at most [MaxKey] bytes: sent again
	// with it, by the same person to the same conversation, it is that message and no
	// second one. "" names none.
	Key string
}

// Say puts a message at the end of what waits in a conversation, and returns its
// number, which its events have. It does not wait for its turn. More than
// [MaxWaiting] is [ErrWaiting], and a key that another message has [ErrKeyUsed].
func (e *Engine) Say(ctx context.Context, p account.Principal, id string, m Message) (int64, error) {
	switch {
	case m.Text == "" && m.Skill == "":
		return 0, fmt.Errorf("message: %w: there is nothing in it", ErrInvalid)
	case len(m.Text)+len(m.Skill) > MaxText:
		return 0, fmt.Errorf("message: %w: it has %d bytes, more than %d", ErrInvalid, len(m.Text)+len(m.Skill), MaxText)
	case !utf8.ValidString(m.Text) || !utf8.ValidString(m.Skill):
		return 0, fmt.Errorf("message: %w: it is no text", ErrInvalid)
	case len(m.Key) > MaxKey || !utf8.ValidString(m.Key):
		return 0, fmt.Errorf("message: %w: its key has %d bytes, more than %d, or is no text", ErrInvalid, len(m.Key), MaxKey)
	}
	in := input{Kind: MessageInput, Text: m.Text, Skill: m.Skill}
	if m.Key == "" {
		return e.want(ctx, p, id, in, nil)
	}
	return e.sayOnce(ctx, p, id, in, m.Key)
}

// sayOnce says what was not said with its key before, and returns the number that it has.
func (e *Engine) sayOnce(ctx context.Context, p account.Principal, id string, in input, key string) (int64, error) {
	s := store.Sent{Session: id, Principal: string(p.User), Label: key, Digest: in.digest()}
	if seq, err := e.saidBefore(ctx, p, s); !errors.Is(err, store.ErrNotFound) {
		return seq, err
	}
	seq, err := e.want(ctx, p, id, in, func(c *change, seq int64) error {
		s.Input = seq
		return c.Sent.Add(ctx, s)
	})
	if errors.Is(err, store.ErrExists) { // it was sent twice at once
		return e.saidBefore(ctx, p, s)
	}
	return seq, err
}

// saidBefore is the number of what was said with a key. None is [store.ErrNotFound], also
// for who may not say anything there.
func (e *Engine) saidBefore(ctx context.Context, p account.Principal, s store.Sent) (int64, error) {
	before, err := e.db.Sent.Get(ctx, s.Session, s.Principal, s.Label)
	if err != nil {
		return 0, err
	}
	if _, err := e.may(ctx, p, account.SessionWrite, s.Session); err != nil {
		return 0, err
	}
	if before.Digest != s.Digest {
		return 0, fmt.Errorf("message: %w", ErrKeyUsed)
	}
	return before.Input, nil
}

// digest is equal for inputs that say the same.
func (in input) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", in.Text, in.Skill))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Compact puts a short text in the place of what was said, when its turn comes: see
// [agent.Agent.Compact].
func (e *Engine) Compact(ctx context.Context, p account.Principal, id string) (int64, error) {
	return e.want(ctx, p, id, input{Kind: CompactInput}, nil)
}

// Cancel ends the turn that is under way, and takes back what waits. Where there is
// neither it changes nothing. It does not wait for the end.
func (e *Engine) Cancel(ctx context.Context, p account.Principal, id string) error {
	if _, err := e.may(ctx, p, account.SessionStop, id); err != nil {
		return err
	}
	_, err := e.put(ctx, id, input{Kind: cancelNote}, func(c *change, _ int64) error {
		return c.Audit.Append(ctx, record(p.User, "session.cancel", id, nil))
	})
	return err
}

// want puts what somebody wants into the inbox, with what belongs to its number.
func (e *Engine) want(ctx context.Context, p account.Principal, id string, in input, with func(c *change, seq int64) error) (int64, error) {
	if _, err := e.may(ctx, p, account.SessionWrite, id); err != nil {
		return 0, err
	}
	in.Scopes, in.Token = p.Scopes.String(), p.Token
	return e.put(ctx, id, in, func(c *change, seq int64) error {
		if with != nil {
			if err := with(c, seq); err != nil {
				return err
			}
		}
		return c.Audit.Append(ctx, record(p.User, "session."+string(in.Kind), id, nil))
	})
}

// put puts something into the inbox, with what belongs to it, and has this node do it
// where no node has the conversation: the lease is taken in the same transaction, so
// that there is never something to do and nobody who has to.
func (e *Engine) put(ctx context.Context, id string, in input, with func(c *change, seq int64) error) (int64, error) {
	if !e.enter() {
		return 0, ErrClosed
	}
	var (
		seq   int64
		lease *store.Lease
	)
	err := e.change(ctx, id, func(c *change) (err error) {
		lease = nil
		// First, as workers do: else two wait for each other.
		switch taken, err := c.Leases.Take(ctx, id, e.node, e.opts.Lease); {
		case errors.Is(err, store.ErrHeld): // who has it finds it
		case err != nil:
			return err
		default:
			lease = &taken
		}
		if seq, err = c.putInput(ctx, in); err != nil {
			return err
		}
		return with(c, seq)
	})
	if err != nil || lease == nil {
		e.leave()
	} else {
		e.start(id, *lease)
	}
	if err != nil {
		return 0, fmt.Errorf("%s in conversation %q: %w", in.Kind, id, err)
	}
	return seq, nil
}

// putInput puts something into the inbox and tells of it.
func (c *change) putInput(ctx context.Context, in input) (int64, error) {
	s, st, err := c.state(ctx)
	if err != nil {
		return 0, err
	}
	return c.putIn(ctx, s, st, in)
}

// noteTo notes something for the turn under way; where there is none nobody cares.
func (c *change) noteTo(ctx context.Context, kind InputKind, about string) error {
	s, st, err := c.state(ctx)
	if err == nil && st.Running {
		_, err = c.putIn(ctx, s, st, input{Kind: kind, Ask: about})
	}
	return err
}

func (c *change) putIn(ctx context.Context, s store.Session, st state, in input) (int64, error) {
	if n := st.Wanted - st.Taken; n >= maxNotes || !in.Kind.note() && n >= MaxWaiting {
		return 0, ErrWaiting
	}
	data, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	if st.Wanted, err = c.add(ctx, inboxOf(c.id), store.Event{Kind: string(in.Kind), Data: data}); err != nil {
		return 0, err
	}
	if err := c.setState(ctx, s, st); err != nil || in.Kind.note() {
		return st.Wanted, err
	}
	return st.Wanted, c.tell(ctx, row{Event: Event{Type: Said, Input: st.Wanted, Kind: in.Kind, Text: in.Text, Skill: in.Skill}})
}

// inputs returns what is in the inbox after a number.
func inputs(ctx context.Context, from store.Events, id string, after int64) ([]input, error) {
	rows, err := from.Read(ctx, inboxOf(id), after, store.MaxRead)
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
