package replay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// maxDepth is the maximum nesting depth of message parts. A result may contain
// parts, but no further results.
const maxDepth = 2

// validText replaces invalid UTF-8, which JSON cannot represent.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func text(s string) *string {
	s = validText(s)
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
	case llm.User, llm.Assistant, llm.Notice, "": // a truncated response may have no role
	default:
		return fmt.Errorf("invalid message role %.50q", m.Role)
	}
	return checkParts(m.Parts, maxDepth)
}

func checkParts(parts []part, depth int) error {
	if depth == 0 && len(parts) > 0 {
		return errors.New("nested result")
	}
	for _, p := range parts {
		if count(p.Text != nil, p.Image != nil, p.Thinking != nil, p.Call != nil, p.Result != nil) != 1 {
			return errors.New("part must have exactly one of text, image, thinking, call or result")
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
			return errors.New("event must have exactly one of text, thinking or call")
		}
		if e.Call != nil && e.Call.Index < 0 {
			return errors.New("event belongs to an unknown call")
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
