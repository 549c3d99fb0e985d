package replay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// maxDepth limits nested results. Conversations contain none.
const maxDepth = 2

// valid replaces invalid UTF-8, which JSON cannot represent.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func text(s string) *string {
	s = valid(s)
	return &s
}

func (q *request) check() error {
	var errs []error
	for _, m := range q.Messages {
		errs = append(errs, m.check())
	}
	return errors.Join(errs...)
}

func (a *answer) check() error {
	if a == nil {
		return nil
	}
	return a.Message.check()
}

func (m *message) check() error {
	switch m.Role {
	case llm.User, llm.Assistant, llm.Notice, "": // a truncated answer may have no role
	default:
		return fmt.Errorf("invalid role %.50q of a message", m.Role)
	}
	return checkParts(m.Parts, maxDepth)
}

func checkParts(parts []part, depth int) error {
	if depth == 0 && len(parts) > 0 {
		return errors.New("nested result")
	}
	for _, p := range parts {
		if count(p.Text != nil, p.Image != nil, p.Thinking != nil, p.Call != nil, p.Result != nil) != 1 {
			return errors.New("part is not exactly one of text, image, thinking, call and result")
		}
		if p.Result != nil {
			if err := checkParts(p.Result.Parts, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkEvents(events []event) error {
	for _, e := range events {
		if count(e.Text != nil, e.Thinking != nil, e.Call != nil) != 1 {
			return errors.New("event is not exactly one of text, thinking and call")
		}
		if e.Call != nil && e.Call.Index < 0 {
			return errors.New("event of an unknown call")
		}
	}
	return nil
}

func count(all ...bool) int {
	n := 0
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}
