package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// answerRetention is how long resolved approval requests are stored.
const answerRetention = 24 * time.Hour

// approvalStore stores approval requests in the database. In the same
// transaction, it publishes each request and each resolution in the conversation,
// and adds a note to the inbox. The note reaches the node on which the turn
// waits.
type approvalStore struct {
	e *Engine
	// handingOver reports whether another node will continue the turn that made
	// the request. Its requests are then not cancelled. handingOver is nil
	// outside a turn.
	handingOver func() bool
}

var _ approval.Store = approvalStore{}

func principalText(p policy.Principal) string { return p.Kind + ":" + p.ID }

// Put implements [approval.Store].
func (k approvalStore) Put(ctx context.Context, a approval.Request) error {
	data, err := plainjson.Line(a)
	if err != nil {
		return err
	}
	return k.e.update(ctx, a.Session, func(c *conversationTx) error {
		if err := c.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: a.ID, Session: a.Session, Principal: principalText(a.Principal), Data: data, Created: a.Created, Deadline: a.Deadline}); err != nil {
			return err
		}
		return c.publish(ctx, eventRow{Event: Event{Type: ApprovalRequested, ApprovalRequest: &a}})
	})
}

// Get implements [approval.Store].
func (k approvalStore) Get(ctx context.Context, id string) (approval.Request, *approval.Answer, error) {
	kept, err := k.e.db.ApprovalRequests.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return approval.Request{}, nil, approval.ErrNotFound
	}
	if err != nil {
		return approval.Request{}, nil, err
	}
	return decodeApproval(kept)
}

func decodeApproval(kept store.ApprovalRequest) (approval.Request, *approval.Answer, error) {
	var a approval.Request
	if err := json.Unmarshal(kept.Data, &a); err != nil {
		return approval.Request{}, nil, fmt.Errorf("decode approval request %q: %w", kept.ID, store.ErrCorrupt)
	}
	if kept.Resolved.IsZero() {
		return a, nil, nil
	}
	answer := &approval.Answer{}
	if err := json.Unmarshal(kept.Answer, answer); err != nil {
		return approval.Request{}, nil, fmt.Errorf("decode answer to approval request %q: %w", kept.ID, store.ErrCorrupt)
	}
	return a, answer, nil
}

// Resolve implements [approval.Store].
func (k approvalStore) Resolve(ctx context.Context, id string, answer approval.Answer) (*approval.Answer, error) {
	if answer.Outcome == approval.Cancelled && answer.By == (policy.Principal{}) && k.handingOver != nil && k.handingOver() {
		return nil, errLeaseLost
	}
	data, err := plainjson.Line(answer)
	if err != nil {
		return nil, err
	}
	kept, err := k.e.db.ApprovalRequests.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, approval.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	var stands *approval.Answer
	err = k.e.update(ctx, kept.Session, func(c *conversationTx) error {
		stands = nil
		settled, first, err := c.ApprovalRequests.Resolve(ctx, id, data)
		if err != nil {
			return err
		}
		if !first {
			_, stands, err = decodeApproval(settled)
			return err
		}
		if err := c.notifyTurn(ctx, answerNote, id); err != nil {
			return err
		}
		if by := answer.By; by.ID != "" {
			err = c.Audit.Append(ctx, auditRecord(account.UserID(by.ID), "ask.answer", kept.Session, Resolution{id, answer.Outcome}))
		}
		if err != nil {
			return err
		}
		return c.publish(ctx, eventRow{Event: Event{Type: ApprovalResolved, Answer: &Resolution{id, answer.Outcome}}})
	})
	if errors.Is(err, store.ErrNotFound) {
		err = approval.ErrNotFound
	}
	return stands, err
}

// Pending implements [approval.Store].
func (k approvalStore) Pending(ctx context.Context, session string) ([]approval.Request, error) {
	kept, err := k.e.db.ApprovalRequests.ListPending(ctx, session)
	return decodeApprovals(kept, err)
}

func decodeApprovals(rows []store.ApprovalRequest, err error) ([]approval.Request, error) {
	if err != nil {
		return nil, err
	}
	var out []approval.Request
	for _, one := range rows {
		a, _, err := decodeApproval(one)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Delete implements [approval.Store].
func (k approvalStore) Delete(ctx context.Context, id string) error {
	return k.e.db.ApprovalRequests.Delete(ctx, id)
}

// ListApprovals returns up to [store.MaxPage] pending approval requests in the
// principal's conversations, oldest first.
func (e *Engine) ListApprovals(ctx context.Context, p account.Principal) ([]approval.Request, error) {
	if err := account.Check(p, account.ApprovalAnswer, account.OwnedBy(p.User)); err != nil {
		return nil, err
	}
	kept, err := e.db.ApprovalRequests.ListPendingFor(ctx, principalText(userPrincipal(p.User)))
	return decodeApprovals(kept, err)
}

// AnswerApproval resolves an approval request, even if its turn waits on another
// node. It succeeds if the principal repeats the answer that resolved the request.
// It fails with an [*approval.ResolvedError] if another answer resolved the request
// or it has expired, and with [approval.ErrNotFound] if it does not exist or the
// principal may not see it.
func (e *Engine) AnswerApproval(ctx context.Context, p account.Principal, id string, answer approval.Answer) error {
	err := e.answerApproval(ctx, p, id, answer)
	answer.By = userPrincipal(p.User)
	if resolved := (*approval.ResolvedError)(nil); errors.As(err, &resolved) && isSameAnswer(answer, resolved.Answer) {
		return nil // the client did not receive the first response
	}
	return err
}

func (e *Engine) answerApproval(ctx context.Context, p account.Principal, id string, answer approval.Answer) error {
	switch answer.Outcome {
	case approval.Accepted, approval.Declined, approval.Cancelled:
	default:
		return fmt.Errorf("answer approval request %.100q: %w: unknown outcome %.40q", id, ErrInvalid, answer.Outcome)
	}
	switch answer.Scope {
	case "", policy.Once, policy.ForSession, policy.Always:
	default:
		return fmt.Errorf("answer approval request %.100q: %w: unknown scope %.40q", id, ErrInvalid, answer.Scope)
	}
	kept, err := e.db.ApprovalRequests.Get(ctx, id)
	switch {
	case p.Anonymous():
		return account.Check(p, account.ApprovalAnswer, account.OwnedBy(p.User))
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("answer approval request %.100q: %w", id, approval.ErrNotFound)
	case err != nil:
		return err
	}
	if _, err := e.authorize(ctx, p, account.ApprovalAnswer, kept.Session); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("answer approval request %.100q: %w", id, approval.ErrNotFound)
		}
		return err
	}
	answer.By = userPrincipal(p.User)
	return approval.NewQueue(approvalStore{e: e}).Resolve(ctx, id, answer)
}

// isSameAnswer reports whether two answers are equal, apart from their times.
// An empty scope equals [policy.Once].
func isSameAnswer(a, b approval.Answer) bool {
	normalize := func(a approval.Answer) string {
		a.ResolvedAt = time.Time{}
		if a.Scope == "" {
			a.Scope = policy.Once
		}
		text, err := plainjson.Line(a) // compacts Content
		if err != nil {
			return ""
		}
		return string(text)
	}
	text := normalize(a)
	return text != "" && text == normalize(b)
}

// expireApprovals resolves overdue requests whose turn is no longer waiting,
// and deletes old requests.
func (e *Engine) expireApprovals(ctx context.Context) error {
	overdue, err := e.db.ApprovalRequests.ListOverdue(ctx, time.Now().Add(-e.opts.Poll)) // a waiting turn expires its own requests first
	if err != nil {
		return err
	}
	for _, one := range overdue {
		if _, err := (approvalStore{e: e}).Resolve(ctx, one.ID, approval.Answer{Outcome: approval.Expired, ResolvedAt: time.Now().UTC()}); err != nil && !errors.Is(err, approval.ErrNotFound) {
			return err
		}
	}
	_, err = e.db.ApprovalRequests.Prune(ctx, time.Now().Add(-answerRetention))
	return err
}

// approvalQueue holds a conversation's approval requests while its turn runs on
// this node.
type approvalQueue struct {
	*approval.Queue
	w *worker

	mu        sync.Mutex // guards delivered
	delivered map[string]chan struct{}
}

func newApprovalQueue(w *worker) *approvalQueue {
	d := &approvalQueue{w: w, delivered: map[string]chan struct{}{}}
	d.Queue = approval.NewQueue(approvalStore{e: w.e, handingOver: func() bool { return w.lost.Load() || w.e.ctx.Err() != nil }})
	d.Subscribe(func(ev approval.Event) {
		if ev.Answer == nil && ev.Request.Kind == approval.KindAction {
			w.e.running.Go(func() { d.answerUndelivered(ev.Request.ID) })
		}
	})
	return d
}

// delivery returns a channel that is closed when a client has received the
// request.
func (d *approvalQueue) delivery(id string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.delivered[id] == nil {
		d.delivered[id] = make(chan struct{})
	}
	return d.delivered[id]
}

// markDelivered records that a client has received a request.
func (d *approvalQueue) markDelivered(id string) {
	c := d.delivery(id)
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// noClientAnswer is the answer to a request that no client received. It has the
// format of a failed client response.
var noClientAnswer = json.RawMessage(`{"success":false,"error":"no client of the conversation is open"}`)

// answerUndelivered waits for [Options.ClientTimeout] and then answers the
// request if no client has received it.
func (d *approvalQueue) answerUndelivered(id string) {
	patience := time.NewTimer(d.w.e.opts.ClientTimeout)
	defer patience.Stop()
	select {
	case <-d.delivery(id):
		return
	case <-d.w.e.ctx.Done():
		return
	case <-patience.C:
	}
	_, err := approvalStore{e: d.w.e}.Resolve(d.w.e.ctx, id, approval.Answer{Outcome: approval.Accepted, Content: noClientAnswer, ResolvedAt: time.Now().UTC()})
	if err != nil {
		return // resolved or about to time out
	}
	d.WakeWaiters(id)
}

// Response is a client's skill:response to a skill:request, which is an approval
// request of kind [approval.KindAction]. The schema requires no fields, because
// [Engine.Respond] reports missing ones with the error messages of older systems.
type Response struct {
	Request string          `json:"request_id,omitempty" maxLength:"512"`
	Skill   string          `json:"skill_name,omitempty" maxLength:"1024"`
	Action  string          `json:"action,omitempty" maxLength:"1024"`
	Success bool            `json:"success,omitempty"`
	Result  json.RawMessage `json:"result,omitempty" doc:"Result of the action"`
	Error   json.RawMessage `json:"error,omitempty" doc:"Error of the action"`
}

// Errors returned by [Engine.Respond]. Older systems call them "Missing
// request_id" and "No pending request found".
var (
	ErrNoRequestID = errors.New("missing request_id")
	ErrNoRequest   = errors.New("no pending request found")
)

// Respond answers a request to a client. Only the first response counts. Respond
// fails with [ErrNoRequest] if the request is already resolved or the principal
// may not see it.
func (e *Engine) Respond(ctx context.Context, p account.Principal, r Response) error {
	if r.Request == "" {
		return ErrNoRequestID
	}
	content, err := plainjson.Line(map[string]any{"success": r.Success, "result": r.Result, "error": r.Error})
	if err != nil {
		return fmt.Errorf("encode response to %.100q: %w: %w", r.Request, ErrInvalid, err)
	}
	a, _, err := approvalStore{e: e}.Get(ctx, r.Request)
	if err == nil && a.Kind != approval.KindAction {
		return ErrNoRequest
	}
	err = e.answerApproval(ctx, p, r.Request, approval.Answer{Outcome: approval.Accepted, Content: content})
	if settled := (*approval.ResolvedError)(nil); errors.Is(err, approval.ErrNotFound) || errors.As(err, &settled) {
		return ErrNoRequest
	}
	return err
}
