package agents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// connect connects the default Model of a host with a key, if it is not "". It
// replaces the current one.
func (h *hub) connect(p account.Principal, host, key string) error {
	current, err := h.DefaultModel(h.t.Context(), h.people["admin"])
	must(h.t, err)
	var replace policy.Digest
	if current != nil {
		replace = current.Digest
	}
	return h.connectTo(p, host, key, replace)
}

// connectTo is like connect, but replaces only the Model with the given digest.
func (h *hub) connectTo(p account.Principal, host, key string, replace policy.Digest) error {
	d, err := agents.ParseDefaultModel(agents.Model{Vendor: "openai", Model: "m", BaseURL: "https://" + host + "/v1"}, key != "")
	must(h.t, err)
	result, err := h.ConnectDefaultModel(h.t.Context(), p, d, key, replace)
	if err == nil && result.HasRefused() {
		h.t.Fatalf("refused: %s", said(result))
	}
	return err
}

// connected returns the host of the default Model and the key that it gets.
func (h *hub) connected() string {
	m, err := h.DefaultModel(h.t.Context(), h.people["admin"])
	must(h.t, err)
	key, err := h.Secrets().ModelKey(h.t.Context(), h.people["outsider"], m.ModelChoice)
	if err != nil {
		wantError(h.t, err, policy.ErrNotGranted)
		key = "none"
	}
	return m.Host() + " " + key
}

// A failed connect leaves the previous model with its key.
func TestFailedConnect(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	admin := h.people["admin"]
	must(t, h.connect(admin, "a.example.com", "key-a"))
	wantEqual(t, h.connected(), "a.example.com key-a")

	noReview := admin.LimitedTo(account.ScopeWrite | account.ScopeRead)
	if err := h.connect(noReview, "b.example.com", "key-b"); err == nil || !strings.Contains(err.Error(), "needs scope review") {
		t.Errorf("without scope review: %v", err)
	}
	wantEqual(t, h.connected(), "a.example.com key-a")

	wantError(t, h.connect(admin, "b.example.com", strings.Repeat("k", encryption.MaxValue+1)), store.ErrInvalid)
	wantEqual(t, h.connected(), "a.example.com key-a")

	must(t, h.connect(admin, "b.example.com", ""))
	wantEqual(t, h.connected(), "b.example.com ")
}

// The key of one server is never sent to another, whatever else changes the Model at
// the same time.
func TestConnectAtTheSameTime(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	admin := h.people["admin"]
	hosts := []string{"a.example.com", "b.example.com"}
	for range 10 {
		var group sync.WaitGroup
		for _, host := range hosts {
			group.Go(func() {
				err := h.connect(admin, host, "key-"+host)
				if _, late := errors.AsType[*agents.DefaultModelError](err); err != nil && !late {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := h.connected(); got != "a.example.com key-a.example.com" && got != "b.example.com key-b.example.com" {
			t.Fatalf("connected: %s", got)
		}
	}
	document := "kind: Model\nmetadata: {name: default, namespace: public}\nspec: {vendor: openai, model: m, baseUrl: %q, apiKey: \"${{secrets.API_KEY}}\"}\n"
	for _, host := range append(hosts, "c.example.com") { // neither a definition from before nor a new one gets the key
		must(t, h.connect(admin, "last.example.com", "key-last"))
		h.apply("admin", fmt.Sprintf(document, "https://"+host+"/v1"))
		wantEqual(t, h.connected(), host+" none")
	}
}

// Of two administrators who connect a model, the later one does not replace the
// Model of the other without having seen it.
func TestConnectReplacesOnlyWhatWasSeen(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	admin := h.people["admin"]
	refused := func(host string, seen policy.Digest, want string) policy.Digest {
		t.Helper()
		other, ok := errors.AsType[*agents.DefaultModelError](h.connectTo(admin, host, "key", seen))
		if !ok || other.Model.Host() != want {
			t.Fatalf("%s replaced another Model than that with the digest %q", host, seen)
		}
		return other.Model.Digest
	}
	must(t, h.connectTo(admin, "a.example.com", "key-a", ""))
	a := refused("b.example.com", "", "a.example.com")
	refused("a.example.com", "", "a.example.com") // it would replace the key
	wantEqual(t, h.connected(), "a.example.com key-a")
	must(t, h.connectTo(admin, "b.example.com", "key-b", a))
	refused("c.example.com", a, "b.example.com")
	wantEqual(t, h.connected(), "b.example.com key-b")
}

// A damaged default Model counts as none, and connecting a model repairs it.
func TestDamagedDefaultModel(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	admin := h.people["admin"]
	must(t, h.connect(admin, "a.example.com", "key-a"))
	m, err := h.DefaultModel(t.Context(), admin)
	must(t, err)
	k, err := h.db.Kinds.Get(t.Context(), m.ID)
	must(t, err)
	_, err = h.db.Kinds.Update(t.Context(), k.ID, k.Generation, json.RawMessage(`{"spec": {"vendor": 7}}`))
	must(t, err)
	m, err = h.DefaultModel(t.Context(), admin)
	if m != nil || err != nil {
		t.Errorf("a damaged Model is %+v, %v", m, err)
	}
	must(t, h.connect(admin, "b.example.com", "key-b"))
	wantEqual(t, h.connected(), "b.example.com key-b")
}
