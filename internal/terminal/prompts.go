package terminal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/approval"
)

// handleApproval handles a new or resolved approval request.
func (m *model) handleApproval(e approval.Event) {
	i := slices.IndexFunc(m.pending, func(a approval.Request) bool { return a.ID == e.Request.ID })
	switch {
	case e.Answer == nil && i < 0 && e.Request.Principal == m.opts.Who && !m.leaving:
		m.pending = append(m.pending, e.Request)
		if len(m.pending) == 1 {
			m.showNextPrompt()
		}
	case e.Answer != nil && i >= 0: // resolved elsewhere, or cancelled
		m.pending = slices.Delete(m.pending, i, i+1)
		if i == 0 {
			m.dialog = nil
			m.showNextPrompt()
		}
	}
}

// showNextPrompt shows the first pending request. It cancels requests that
// cannot be shown.
func (m *model) showNextPrompt() {
	for m.dialog == nil && len(m.pending) > 0 {
		q := &m.pending[0]
		if q.Kind == approval.KindApproval {
			m.dialog = newApproval(q, m.opts.Before)
		} else if f, err := newForm(q); err == nil {
			m.dialog = f
		} else {
			m.printProblem(err.Error())
			m.sendAnswer(*q, approval.Answer{Outcome: approval.Cancelled})
			m.pending = m.pending[1:]
			continue
		}
		m.completion.close()
		if !m.input.empty() && m.now().Sub(m.lastKey) < promptPause {
			m.ignoreKeysUntil = m.now().Add(promptPause)
		}
	}
}

// resolvePrompt sends the answer to the current request and shows the next
// prompt.
func (m *model) resolvePrompt(a approval.Answer) {
	q := m.pending[0]
	m.printDecision(m.dialog, a)
	m.pending, m.dialog = m.pending[1:], nil
	m.sendAnswer(q, a)
	m.showNextPrompt()
}

// printDecision prints the user's decision about a call.
func (m *model) printDecision(d dialog, a approval.Answer) {
	asked, ok := d.(*approvalPrompt)
	if !ok {
		return
	}
	word := "allowed once"
	switch {
	case a.Outcome == approval.Accepted && a.Scope == "" && !asked.isCall():
		word = "allowed"
	case a.Outcome != approval.Accepted:
		word = "not allowed"
	case a.Scope != "":
		word = map[string]string{"session": "allowed for this conversation", "always": "always allowed"}[string(a.Scope)]
	}
	m.printBelow(line{{"  " + strings.TrimSpace(Plain(baseName(asked.Tool))+" "+word), faint}})
}

// sendAnswer sends an answer to the queue in the background, because the queue
// may write a file.
func (m *model) sendAnswer(q approval.Request, a approval.Answer) {
	a.By = m.opts.Who
	ctx := context.WithoutCancel(m.ctx)
	m.running.Go(func() {
		resolved := (*approval.ResolvedError)(nil)
		if err := m.opts.Approvals.Resolve(ctx, q.ID, a); err != nil && !errors.As(err, &resolved) && !errors.Is(err, approval.ErrNotFound) {
			m.send(replyMsg{err.Error()})
		}
	})
}
