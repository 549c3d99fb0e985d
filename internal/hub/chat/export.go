package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/transcript"
	"github.com/loadout-dev/loadout/session"
)

// Format is a file format for [Engine.Export].
type Format string

// Export formats.
const (
	Markdown Format = "markdown" // messages and calls of the current branch, for reading
	JSONL    Format = "jsonl"    // one transcript event of any branch per line, with images, readable by [session.FileLog]
)

// exportedEvent is a line of an export as [JSONL]. The first one describes the
// conversation.
type exportedEvent struct {
	*session.Event
	Conversation *exportedInfo `json:"conversation,omitempty"`
}

// exportedInfo describes a conversation. Imports read it.
type exportedInfo struct {
	Title string `json:"title"`
	// TitleSource is "user", "model" or "message".
	TitleSource string `json:"title_source"`
}

func newExportedInfo(s store.Session) *exportedInfo {
	if s.Title == "" {
		return nil
	}
	source := s.TitleSource
	if source == titleAsked {
		source = titleByMessage
	}
	return &exportedInfo{s.Title, source}
}

// Export writes a conversation to w. It reads the conversation in parts. Errors
// from w are returned unchanged.
func (e *Engine) Export(ctx context.Context, p account.Principal, id string, f Format, w io.Writer) error {
	s, err := e.authorize(ctx, p, account.SessionRead, id)
	if err != nil {
		return err
	}
	var write func(io.Writer, *session.Event) error
	switch f {
	case JSONL:
		about := newExportedInfo(s)
		embedded := &embeddedImages{hashes: map[string]string{}}
		write = func(w io.Writer, event *session.Event) error {
			if err := e.embedImages(ctx, id, event, embedded); err != nil {
				return err
			}
			line := exportedEvent{event, about}
			about = nil
			return writeLine(w, line)
		}
	case Markdown:
		last, err := e.db.Events.Last(ctx, id)
		if err != nil {
			return err
		}
		path, err := readPath(ctx, e.db.Events, id, last)
		if err != nil {
			return err
		}
		write = func(w io.Writer, e *session.Event) error {
			if _, ok := slices.BinarySearch(path, e.Seq); !ok {
				return nil
			}
			return writeMarkdown(w, e)
		}
		title := s.Title
		if title == "" {
			title = "Conversation " + s.ID
		}
		if _, err := fmt.Fprintf(w, "# %s\n", transcript.Escape(title)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("export conversation: %w: unknown format %.40q (want markdown or jsonl)", ErrInvalid, f)
	}
	for after := int64(0); ; {
		const page = 32 // a step may contain images
		rows, err := e.db.Events.Read(ctx, id, after, page)
		if err != nil {
			return err
		}
		for _, r := range rows {
			s, err := readStep(r)
			if err != nil {
				return err
			}
			if err := write(w, redactStart(&s.Event)); err != nil {
				return err
			}
			after = r.Seq
		}
		if len(rows) < page {
			return nil
		}
	}
}

func writeLine(w io.Writer, e exportedEvent) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(e)
}

func writeMarkdown(w io.Writer, e *session.Event) error {
	_, err := io.WriteString(w, transcript.Markdown(e))
	return err
}
