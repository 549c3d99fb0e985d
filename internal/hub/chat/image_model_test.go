package chat_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// widths returns the widths of the images in a request, also of those in results, and
// the texts that replace others.
func widths(t testing.TB, r *llm.Request) (out []any) {
	t.Helper()
	for _, m := range r.Messages {
		parts := slices.Clone(m.Parts)
		for _, p := range m.Parts {
			if res, ok := p.(llm.Result); ok {
				parts = append(parts, res.Parts...)
			}
		}
		for _, p := range seen(t, &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: parts}}}) {
			if text, ok := p.(string); !ok || len(text) > 6 && text[:6] == "[Image" {
				out = append(out, p)
			}
		}
	}
	return out
}

// pictures has a tool that returns as many images as it is asked for.
func pictures(t *testing.T) func(*chat.ToolContext) []agent.Tool {
	return func(*chat.ToolContext) []agent.Tool {
		return []agent.Tool{tool("draw", func(_ context.Context, args json.RawMessage) (*agent.Outcome, error) {
			var in struct{ Widths []int }
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, err
			}
			out := &agent.Outcome{Text: "drawn"}
			for _, w := range in.Widths {
				_, data := photo(t, w)
				out.Images = append(out.Images, llm.Image{MIMEType: "image/png", Data: data})
			}
			return out, nil
		})}
	}
}

// Images in results of tools count towards the limit of a request. Older images are
// omitted first.
func TestLimitOfImagesInResults(t *testing.T) {
	ctx := t.Context()
	var last *llm.Request
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: pictures(t), model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		last = r
		return echo(ctx, r)
	})})
	id := begin(t, e)
	data, _ := photo(t, 1)
	if err := e.WriteFile(ctx, ada, id, "p.png", data); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		in, err := e.SendMessage(ctx, ada, id, chat.Message{Text: "hello", Images: slices.Repeat([]chat.ImageRef{{Path: "p.png"}}, 5)})
		if err != nil {
			t.Fatal(err)
		}
		end(t, e, id, in)
	}
	if got := widths(t, last); !reflect.DeepEqual(got, slices.Repeat([]any{1}, 20)) {
		t.Fatalf("20 images: the model got %q", got)
	}
	end(t, e, id, say(t, e, id, `call draw {"widths":[2]}`))
	want := append(slices.Repeat([]any{"[Image p.png omitted: newer images fill the request.]\n"}, 11), slices.Repeat([]any{1}, 9)...)
	if got := widths(t, last); !reflect.DeepEqual(got, append(want, 2)) {
		t.Errorf("21 images: the model got %q", got)
	}
}

// A model that does not read images gets none of those in results of tools.
func TestImagesInResultsForTextModel(t *testing.T) {
	var last *llm.Request
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{blind: true, tools: pictures(t), model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		last = r
		return echo(ctx, r)
	})})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, `call draw {"widths":[2]}`))
	if got := widths(t, last); !reflect.DeepEqual(got, []any{"[Image omitted: this model does not accept images.]\n"}) {
		t.Errorf("the model got %q", got)
	}
}

// If the model's server rejects an image, the turn continues without it, and so do later
// ones. The user is told, and other images are still sent.
func TestRejectedImages(t *testing.T) {
	ctx := t.Context()
	var last *llm.Request
	requests := 0
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: pictures(t), model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		requests++
		if slices.ContainsFunc(widths(t, r), func(w any) bool { return w == 13 }) {
			return nil, &llm.StatusError{Vendor: "script", Code: 400, Message: "Could not process image"}
		}
		last = r
		return echo(ctx, r)
	})})
	id := begin(t, e)
	for name, width := range map[string]int{"good.png": 1, "bad.png": 13, "later.png": 2} {
		data, _ := photo(t, width)
		if err := e.WriteFile(ctx, ada, id, name, data); err != nil {
			t.Fatal(err)
		}
	}
	send := func(text string, images ...chat.ImageRef) (events []chat.Event) {
		t.Helper()
		requests = 0
		in, err := e.SendMessage(ctx, ada, id, chat.Message{Text: text, Images: images})
		if err != nil {
			t.Fatal(err)
		}
		events = until(t, e, id, 0, func(ev chat.Event) bool { return ev.Type == chat.TurnEnded && ev.Input == in })
		if ended := events[len(events)-1]; ended.Reason != chat.Done {
			t.Fatalf("the turn ended as %+v", ended)
		}
		return events
	}
	send("a", chat.ImageRef{Path: "good.png"})
	events := send("b", chat.ImageRef{Path: "bad.png"})
	const omitted = "[Image bad.png omitted: the model's server rejected it.]\n"
	if got := widths(t, last); !reflect.DeepEqual(got, []any{1, omitted}) || requests != 2 {
		t.Errorf("after %d requests, the model got %q", requests, got)
	}
	if !slices.ContainsFunc(events, func(ev chat.Event) bool { return ev.Type == chat.Notice && ev.Code == chat.ImagesRejected }) {
		t.Errorf("the user is not told: %s", isReported(events))
	}
	send("c", chat.ImageRef{Path: "later.png"})
	if got := widths(t, last); !reflect.DeepEqual(got, []any{1, omitted, 2}) || requests != 1 {
		t.Errorf("after %d requests, the model got %q", requests, got)
	}
	send(`call draw {"widths":[3,13]}`)
	if got, want := widths(t, last), []any{1, omitted, 2, "[Image omitted: the model's server rejected it.]\n", "[Image omitted: the model's server rejected it.]\n"}; !reflect.DeepEqual(got, want) || requests != 3 {
		t.Errorf("after %d requests, the model got %q", requests, got)
	}
}

// A request that exceeds the context window is not blamed on its images. Images that
// were rejected are sent again after a compaction.
func TestImagesAreNotRejectedForLength(t *testing.T) {
	ctx := t.Context()
	var last *llm.Request
	refusal := "This model's maximum context length is 8192 tokens."
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		if refusal != "" && slices.ContainsFunc(widths(t, r), func(w any) bool { return w == 13 }) {
			return nil, &llm.StatusError{Vendor: "script", Code: 400, Message: refusal}
		}
		last = r
		return echo(ctx, r)
	})})
	id := begin(t, e)
	data, _ := photo(t, 13)
	if err := e.WriteFile(ctx, ada, id, "p.png", data); err != nil {
		t.Fatal(err)
	}
	send := func() chat.Event {
		t.Helper()
		in, err := e.SendMessage(ctx, ada, id, chat.Message{Text: "Look", Images: []chat.ImageRef{{Path: "p.png"}}})
		if err != nil {
			t.Fatal(err)
		}
		return end(t, e, id, in)
	}
	if ended := send(); ended.Reason != chat.Failed || !strings.Contains(ended.Text, "maximum context length") {
		t.Errorf("the turn ended as %+v", ended)
	}
	refusal = ""
	send()
	if got, want := widths(t, last), []any{13, 13}; !reflect.DeepEqual(got, want) {
		t.Errorf("the model got %q, want %q", got, want)
	}
	refusal = "Could not process image"
	send()
	if got := widths(t, last); len(got) != 3 || got[2] == 13 {
		t.Errorf("the model got %q", got)
	}
	refusal = ""
	in, err := e.Compact(ctx, ada, id)
	if err != nil {
		t.Fatal(err)
	}
	end(t, e, id, in)
	send()
	if got := widths(t, last); len(got) == 0 || got[len(got)-1] != 13 {
		t.Errorf("after a compaction, the model got %q", got)
	}
}
