package assembly_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// The model that a user selects for a conversation answers the messages that are sent
// from then on, on every node. Whether the user may use it is checked for each turn.
func TestSelectedModel(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		w.apply(w.meg, "kind: Model\nmetadata: {name: shared, namespace: '"+string(w.team)+"'}\nspec: {vendor: demo}\n")
		w.apply(w.ada, "kind: Model\nmetadata: {name: fast}\nspec: {vendor: demo}\n---\nkind: Model\nmetadata: {name: slow}\nspec: {vendor: demo}\n"+
			"---\nkind: Ghost\nmetadata: {name: helper}\n---\nkind: Bot\nmetadata: {name: helper}\nspec: {ghostRef: helper, modelRef: slow}\n")
		models := map[string]string{} // ID by name
		for _, p := range []account.Principal{w.ada, w.meg} {
			found, _, err := w.kinds.ListModels(t.Context(), p, store.Page{})
			must(t, err)
			for _, m := range found {
				models[m.Name] = m.ID
			}
		}
		choose := func(p account.Principal, id, model string) {
			t.Helper()
			must(t, w.chat.SetModel(t.Context(), p, id, models[model]))
		}

		id := w.begin(w.ada, "Bot/default/helper")
		w.ask(w.ada, id, "one", "slow  heard: one")
		choose(w.ada, id, "fast")
		w.ask(w.ada, id, "two", "fast  heard: two")
		c, err := w.chat.Get(t.Context(), w.ada, id)
		must(t, err)
		if c.Model != models["fast"] {
			t.Errorf("the model is %q, want %q", c.Model, models["fast"])
		}
		other := w.newChat(nil)
		must(t, w.chat.Close(t.Context()))
		w.chat = other // another node
		w.ask(w.ada, id, "three", "fast  heard: three")
		choose(w.ada, id, "")
		w.ask(w.ada, id, "four", "slow  heard: four")

		mine := w.begin(w.bob, "")
		choose(w.bob, mine, "shared")
		w.ask(w.bob, mine, "hello", "shared  heard: hello")
		choose(w.bob, mine, "fast") // which no operation of the API permits
		const gone = "failed: the model chosen for this conversation was removed, or you may no longer use it; choose another model and send the message again"
		w.ask(w.bob, mine, "hello", gone)
		for p, want := range map[*account.Principal]bool{&w.ada: true, &w.bob: true, &w.meg: true, &w.eve: false, &w.root: false} {
			_, err := w.kinds.Model(t.Context(), *p, models["shared"])
			if want != (err == nil) {
				t.Errorf("%s uses the model of the group: %v", p.Name, err)
			}
		}

		choose(w.ada, id, "fast")
		must(t, w.kinds.Delete(t.Context(), w.ada, agents.ModelKind, "default", "fast", false))
		w.ask(w.ada, id, "five", gone)
		choose(w.ada, id, "")
		w.ask(w.ada, id, "six", "slow  heard: six")
		if err := w.chat.SetModel(t.Context(), w.eve, id, ""); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("another user selects the model: %v", err)
		}
	})
}

// A message is answered by the model that was selected when it was sent, even if it
// waits for another turn.
func TestSelectedModelOfWaitingMessage(t *testing.T) {
	w := sqlite(t)
	w.apply(w.ada, "kind: Model\nmetadata: {name: fast}\nspec: {vendor: demo}\n")
	found, _, err := w.kinds.ListModels(t.Context(), w.ada, store.Page{})
	must(t, err)
	started, release := make(chan struct{}, 8), make(chan struct{})
	w.model.answer = func(ctx context.Context, m *script, r *llm.Request) (*llm.Answer, error) {
		started <- struct{}{}
		<-release
		return echo(ctx, m, r)
	}
	id := w.begin(w.ada, "")
	_, err = w.chat.SendMessage(t.Context(), w.ada, id, chat.Message{Text: "one"})
	must(t, err)
	<-started
	second, err := w.chat.SendMessage(t.Context(), w.ada, id, chat.Message{Text: "two"})
	must(t, err)
	must(t, w.chat.SetModel(t.Context(), w.ada, id, found[0].ID))
	close(release)
	w.ask(w.ada, id, "three", "fast  heard: three")
	for ev, err := range w.chat.Watch(t.Context(), w.ada, id, 0) {
		must(t, err)
		if ev.Input == second && ev.Step != nil && ev.Step.Message != nil && ev.Step.Message.Role == llm.Assistant {
			if ev.Step.Message.Model != "script" {
				t.Errorf("%s answered the second message", ev.Step.Message.Model)
			}
			return
		}
	}
}

// The context window of a Model is known to the agent, which compacts the conversation
// in time.
func TestContextWindow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		w.apply(w.ada, "kind: Model\nmetadata: {name: small}\nspec: {vendor: demo, window: 32000}\n")
		found, _, err := w.kinds.ListModels(t.Context(), w.ada, store.Page{})
		must(t, err)
		for model, want := range map[string]int{found[0].ID: 32000, "": 0} {
			c, err := w.chat.Get(t.Context(), w.ada, w.begin(w.ada, ""))
			must(t, err)
			c.Model = model
			setup, err := w.kits.ChatSetup(t.Context(), chat.Request{Principal: w.ada, Conversation: c})
			must(t, err)
			if got := setup.Agent.ContextWindow; got != want {
				t.Errorf("the context window of the model %q is %d, want %d", model, got, want)
			}
			must(t, setup.Close())
		}
	})
}
