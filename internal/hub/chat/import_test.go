package chat_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// A conversation over the quota is refused before it is written.
func TestImportChecksQuotaFirst(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{}, func(o *chat.Options) { o.Quotas.Default.User.Sessions = 1 })
	begin(t, e)
	i, err := e.OpenImporter(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	err = i.Import(t.Context(), chat.Imported{Key: "x", Title: "X"}, func(session.Log) error {
		t.Error("the conversation was written")
		return nil
	})
	if _, ok := errors.AsType[*quota.ExceededError](err); !ok {
		t.Errorf("error %v", err)
	}
}

// A conversation is found again when the time of its last message is no longer in the
// future, and therefore known.
func TestImportIsFoundOnceItsTimeIsKnown(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	i, err := e.OpenImporter(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	unknown := chat.Imported{Key: "x", Title: "X"}
	known := chat.Imported{Key: "x", Title: "X", Last: time.Now()}
	if id, err := i.Find(t.Context(), known); id != "" || err != nil {
		t.Errorf("before: %q, %v", id, err)
	}
	if err := i.Import(t.Context(), unknown, func(session.Log) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []chat.Imported{unknown, known} {
		if id, err := i.Find(t.Context(), c); id != i.ID(unknown) || err != nil {
			t.Errorf("%v: %q, %v", c.Last, id, err)
		}
	}
}

// The images of an imported conversation are stored as files, and sent to the model.
func TestImportImages(t *testing.T) {
	var last *llm.Request
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(func(_ context.Context, r *llm.Request) (*llm.Answer, error) {
		last = r
		return says("Nice."), nil
	})})
	i, err := e.OpenImporter(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	_, first := photo(t, 1)
	_, second := photo(t, 2)
	c := chat.Imported{Key: "x", Title: "X"}
	err = i.Import(t.Context(), c, func(log session.Log) error {
		var images []llm.Image
		for _, data := range [][]byte{first, second, first, []byte("<script>")} {
			images = append(images, llm.Image{MIMEType: "text/html", Data: data})
		}
		return log.Append(t.Context(), &session.Event{Message: &session.Message{Role: llm.User, Text: "Look.", Images: images}})
	})
	if err != nil {
		t.Fatal(err)
	}
	end(t, e, i.ID(c), say(t, e, i.ID(c), "And now?"))
	const names = "(Files of the images: images/1.png, images/2.png, images/1.png, images/omitted)\n\n"
	if got, want := seen(t, last), []any{1, 2, 1, "[Image images/omitted omitted: it was deleted.]\n", names, "Look.", "And now?"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the model got %q, want %q", got, want)
	}
	files, err := e.Files(t.Context(), ada, i.ID(c))
	if err != nil || len(files) != 2 {
		t.Errorf("the files are %+v, %v", files, err)
	}
}

// A title that was taken from a message is replaced by the model, others are not.
func TestTitleOfImport(t *testing.T) {
	m := &titler{title: gives("By the model")}
	e := node(t, openAt(t, databases["SQLite"](t)), m.setup(), withTitles)
	i, err := e.OpenImporter(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for source, want := range map[string]string{"": "Given", "user": "Given", "model": "Given", "asked": "Given", "message": "By the model"} {
		c := chat.Imported{Key: "from " + source, Title: "Given", TitleSource: source}
		err = i.Import(t.Context(), c, func(log session.Log) error {
			return log.Append(t.Context(), &session.Event{Message: &session.Message{Role: llm.User, Text: "hello"}}, &session.Event{Message: &session.Message{Role: llm.Assistant, Text: "Hello."}})
		})
		if err != nil {
			t.Fatal(err)
		}
		id := i.ID(c)
		in := say(t, e, id, "and now?")
		if want != "Given" {
			until(t, e, id, 0, isType(chat.TitleChanged))
		}
		end(t, e, id, in)
		if got := titleOf(t, e, id); got != want {
			t.Errorf("%q: title %q, want %q", source, got, want)
		}
	}
	if n := m.asked.get(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}
