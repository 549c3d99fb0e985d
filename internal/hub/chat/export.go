package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/session"
)

// Format is how a conversation is written out.
type Format string

// The formats.
const (
	Markdown Format = "markdown" // what was said and called, for people
	Lines    Format = "jsonl"    // the transcript, one event a line, as [session.File] reads it
)

// Export writes a conversation out, a part of it at a time. An error of w is returned
// as it is.
func (e *Engine) Export(ctx context.Context, p account.Principal, id string, f Format, w io.Writer) error {
	s, err := e.may(ctx, p, account.SessionRead, id)
	if err != nil {
		return err
	}
	var write func(io.Writer, *session.Event) error
	switch f {
	case Lines:
		write = writeLine
	case Markdown:
		write = writeMarkdown
		title := s.Title
		if title == "" {
			title = "Conversation " + s.ID
		}
		if _, err := fmt.Fprintf(w, "# %s\n", session.Literal(title)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("export: %w: %.40q is no format; there are markdown and jsonl", ErrInvalid, f)
	}
	for after := int64(0); ; {
		const page = 32 // a step may have pictures
		rows, err := e.db.Events.Read(ctx, id, after, page)
		if err != nil {
			return err
		}
		for _, r := range rows {
			s, err := readStep(r)
			if err != nil {
				return err
			}
			if err := write(w, public(&s.Event)); err != nil {
				return err
			}
			after = r.Seq
		}
		if len(rows) < page {
			return nil
		}
	}
}

func writeLine(w io.Writer, e *session.Event) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(e)
}

func writeMarkdown(w io.Writer, e *session.Event) error {
	_, err := io.WriteString(w, session.Markdown(e))
	return err
}
