package terminal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/approval"
)

// asked is told of a question, or that one is settled.
func (m *model) asked(e approval.Event) {
	i := slices.IndexFunc(m.asks, func(a approval.Request) bool { return a.ID == e.Request.ID })
	switch {
	case e.Answer == nil && i < 0 && e.Request.Principal == m.opts.Who && !m.leaving:
		m.asks = append(m.asks, e.Request)
		if len(m.asks) == 1 {
			m.showAsk()
		}
	case e.Answer != nil && i >= 0: // by somebody else, or taken back
		m.asks = slices.Delete(m.asks, i, i+1)
		if i == 0 {
			m.dialog = nil
			m.showAsk()
		}
	}
}

// showAsk shows the first question that waits. One that cannot be shown is left.
func (m *model) showAsk() {
	for m.dialog == nil && len(m.asks) > 0 {
		q := &m.asks[0]
		if q.Kind == approval.KindApproval {
			m.dialog = newApproval(q, m.opts.Before)
		} else if f, err := newForm(q); err == nil {
			m.dialog = f
		} else {
			m.wrong(err.Error())
			m.answer(*q, approval.Answer{Outcome: approval.Cancelled})
			m.asks = m.asks[1:]
			continue
		}
		m.completion.close()
		if !m.input.empty() && m.now().Sub(m.typed) < pause {
			m.deaf = m.now().Add(pause)
		}
	}
}

// settle answers the question that is shown, and shows the next one.
func (m *model) settle(a approval.Answer) {
	q := m.asks[0]
	m.said(m.dialog, a)
	m.asks, m.dialog = m.asks[1:], nil
	m.answer(q, a)
	m.showAsk()
}

// said keeps in the scrollback what was decided about a call.
func (m *model) said(d dialog, a approval.Answer) {
	asked, ok := d.(*approvalPrompt)
	if !ok {
		return
	}
	word := "allowed once"
	switch {
	case a.Outcome == approval.Accepted && a.Scope == "" && !asked.call():
		word = "allowed"
	case a.Outcome != approval.Accepted:
		word = "not allowed"
	case a.Scope != "":
		word = map[string]string{"session": "allowed for this conversation", "always": "allowed from now on"}[string(a.Scope)]
	}
	m.note(line{{"  " + strings.TrimSpace(Plain(bare(asked.Tool))+" "+word), faint}})
}

// answer gives an answer to the desk, which may wait for a file.
func (m *model) answer(q approval.Request, a approval.Answer) {
	a.By = m.opts.Who
	ctx := context.WithoutCancel(m.ctx)
	m.running.Go(func() {
		settled := (*approval.ResolvedError)(nil)
		if err := m.opts.Desk.Resolve(ctx, q.ID, a); err != nil && !errors.As(err, &settled) && !errors.Is(err, approval.ErrNotFound) {
			m.send(replyMsg{err.Error()})
		}
	})
}
