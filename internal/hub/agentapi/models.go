package agentapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// priceJSON is the price of a model per million tokens.
type priceJSON struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// modelJSON is a model that the user may select.
type modelJSON struct {
	Default   bool       `json:"default,omitempty" doc:"The model of conversations for which no model is selected; it is the first item"`
	Own       bool       `json:"own,omitempty" doc:"The hub's own model, for agents without a Model: the operator's, else the public Model default, else the demo"`
	Name      string     `json:"name,omitempty" doc:"Name of the Model, for modelRef of a Bot; absent for the operator's"`
	Namespace string     `json:"namespace,omitempty" doc:"Namespace of the Model"`
	ID        string     `json:"id,omitempty"`
	Vendor    string     `json:"vendor" doc:"API of the model: anthropic, openai or demo"`
	Model     string     `json:"model,omitempty" doc:"Name at the vendor"`
	BaseURL   string     `json:"base_url,omitempty" doc:"Absent for the address of the vendor or the operator"`
	Digest    string     `json:"digest,omitempty" doc:"Digest of the current Model; a secret is granted to it as its key"`
	Key       string     `json:"key" enum:"operator,none,granted,missing" doc:"operator: provided by the hub; none: not needed; granted: you have one; missing: needed, but you have none"`
	Price     *priceJSON `json:"price,omitempty" doc:"US dollars per million tokens; absent if unknown"`
	Window    int        `json:"window,omitempty" doc:"Context window in tokens; absent if unknown"`
	Images    bool       `json:"images,omitempty" doc:"Whether the model is known to read images: by its name, images in the Model, or models.images of the operator"`
}

func (h *Handlers) modelsAPI() {
	api.Add(h.Server, api.Operation("list-models", "GET", "/models", "List the models that you may choose: the default on the first page, then the defined ones by name"), h.listModels)
	api.AddFor(h.Server, api.Operation("list-offered-models", "POST", "/models/offered", "List the names of the models that a vendor or server offers; for administrators"), offeredTimeout, h.listOffered)
	api.AddFor(h.Server, api.Operation("connect-model", "PUT", "/models/default", "Test a model, and make it the model of agents without a Model; for administrators, if the operator configured none"), connectTimeout, h.connectModel)
}

func (h *Handlers) listModels(ctx context.Context, in *struct {
	api.Paging
	Agent string `query:"agent" maxLength:"700" doc:"KIND/NAMESPACE/NAME of a Ghost, Bot or Team whose model is the default; without it, the hub's own model is the default"`
}) (*api.Body[api.ListBody[modelJSON]], error) {
	found, next, err := h.Agents.ListModels(ctx, account.FromContext(ctx), in.Page())
	out, err := api.PageOf(found, next, err, h.newModelJSON)
	if err != nil || in.After != "" {
		return out, err
	}
	first, err := h.defaultModel(ctx, in.Agent)
	if err != nil {
		return nil, err
	}
	first.Default = true
	out.Body.Items = append([]modelJSON{first}, out.Body.Items...)
	return out, nil
}

// defaultModel describes the model of an agent, or the hub's own if the agent has none
// or agent is "".
func (h *Handlers) defaultModel(ctx context.Context, agent string) (modelJSON, error) {
	if agent == "" {
		return h.ownModel(ctx)
	}
	parts := strings.SplitN(agent, "/", 3)
	if len(parts) < 3 {
		return modelJSON{}, api.InvalidFields(api.Fault{Where: "query.agent", Message: "not KIND/NAMESPACE/NAME"})
	}
	m, err := h.Agents.AgentModel(ctx, account.FromContext(ctx), parts[0], parts[1], parts[2])
	if err != nil {
		return modelJSON{}, err
	}
	if m == nil {
		return h.ownModel(ctx)
	}
	return h.newModelJSON(*m), nil
}

// ownModel describes the hub's own model.
func (h *Handlers) ownModel(ctx context.Context) (modelJSON, error) {
	own, connected, err := h.Assemblies.OwnModel(ctx, account.FromContext(ctx))
	switch {
	case err != nil:
		return modelJSON{}, err
	case connected != nil:
		out := h.newModelJSON(*connected)
		out.Own = true
		return out, nil
	}
	vendor, name, _ := strings.Cut(own.Name(), ":")
	return h.withPrice(own.Name(), modelJSON{Own: true, Vendor: vendor, Model: name, Key: "operator", Images: h.Images(own.Name())}), nil
}

func (h *Handlers) newModelJSON(m agents.AvailableModel) modelJSON {
	out := modelJSON{Name: m.Name, Namespace: cmp.Or(m.Namespace, api.OwnNamespace), ID: m.ID, Vendor: m.Vendor, Model: m.Model.Model, BaseURL: m.BaseURL, Digest: string(m.Digest), Key: "none", Images: m.ReadsImages()}
	switch {
	case m.HasKey:
		out.Key = "granted"
	case m.NeedsKey:
		out.Key = "missing"
	}
	out = h.withPrice(m.ReportedName(), out)
	out.Window = cmp.Or(m.Window, out.Window)
	return out
}

// withPrice returns m with the price and the context window of the model that
// reports the given name.
func (h *Handlers) withPrice(name string, m modelJSON) modelJSON {
	m.Window = h.Window(name)
	if p, known := h.Price(name); known {
		m.Price = newPriceJSON(p)
	}
	return m
}

func newPriceJSON(p usage.Price) *priceJSON {
	return &priceJSON{p.Input, p.Output, p.CacheRead, p.CacheWrite}
}

const (
	offeredTimeout = 30 * time.Second
	connectTimeout = 3 * time.Minute // a server may load the model first
	testTokens     = 256             // some models think before they answer
	maxModelError  = 600
	maxModelName   = 256
)

// ModelServer selects a server of models. The key is never read back.
type ModelServer struct {
	Vendor  string `json:"vendor" enum:"anthropic,openai" doc:"API of the server; openai is also for compatible servers"`
	BaseURL string `json:"base_url,omitempty" maxLength:"2048" doc:"Address of the API, such as http://127.0.0.1:11434/v1; default the vendor's. On a hub without accounts, it may be on the same machine; other addresses that are not public need the operator's permission"`
	Key     string `json:"key,omitempty" maxLength:"4096" doc:"API key; it is stored encrypted, and sent only to this server"`
}

// checkModelServer returns the document of the default Model. It returns an error if
// the user must not connect it or lacks permission for one of the actions, or if the
// document is invalid.
func (h *Handlers) checkModelServer(ctx context.Context, s ModelServer, model string, window int, actions ...account.Action) (*agents.Document, error) {
	p := account.FromContext(ctx)
	for _, action := range actions {
		if err := account.Check(p, action, account.Resource{Shared: true}); err != nil {
			return nil, err
		}
	}
	own, _, err := h.Assemblies.OwnModel(ctx, p)
	if err != nil {
		return nil, err
	}
	if !vendors.IsDemo(own.Name()) {
		return nil, api.NewProblem(409, "the operator configured the model of this hub", "ask the operator to remove models.default, or define a Model for an agent")
	}
	d, err := agents.ParseDefaultModel(agents.Model{Vendor: s.Vendor, Model: model, BaseURL: s.BaseURL, Window: window}, s.Key != "")
	if err != nil {
		return nil, err
	}
	result, err := h.Agents.Apply(ctx, p, []*agents.Document{d}, true)
	if err == nil && result.HasRefused() {
		err = refusedModel(result)
	}
	return d, err
}

func refusedModel(r *agents.Result) error {
	for _, f := range r.Changes[0].Findings {
		if f.Code == "address-private" {
			return privateAddress(f.Message)
		}
	}
	return api.NewProblem(422, "%s", "correct it and try again", firstError(r.Changes[0].Findings))
}

func (h *Handlers) listOffered(ctx context.Context, in *struct{ Body ModelServer }) (*api.Body[api.ListBody[string]], error) {
	if _, err := h.checkModelServer(ctx, in.Body, "any", 0, account.ServerApply); err != nil {
		return nil, err
	}
	networks := h.Private
	if h.Single {
		networks = vendors.WithLoopback(networks)
	}
	if err := vendors.CheckKeyTransport(in.Body.BaseURL, in.Body.Key, networks); err != nil {
		return nil, modelProblem(err, in.Body.Key)
	}
	client := vendors.PublicClient(networks)
	defer client.CloseIdleConnections()
	vendor, _ := vendors.Lookup(in.Body.Vendor)
	names, err := vendor.Models(ctx, vendors.Options{Key: in.Body.Key, BaseURL: in.Body.BaseURL, HTTP: client})
	if err != nil {
		return nil, listProblem(err, in.Body.Key)
	}
	usable := func(name string) bool { return len(name) <= maxModelName && name == untrusted.New(name).ForPage() }
	return api.ListOf(slices.DeleteFunc(names, func(name string) bool { return !usable(name) }), "", nil)
}

func (h *Handlers) connectModel(ctx context.Context, in *struct {
	Body struct {
		ModelServer
		Model   string `json:"model" minLength:"1" maxLength:"256" doc:"Name at the vendor"`
		Window  int    `json:"window,omitempty" minimum:"1" maximum:"100000000" doc:"Context window in tokens; the default is known by the model's name if the server is the vendor's own"`
		Replace bool   `json:"replace,omitempty" doc:"Replace the public Model default; without it, the request fails with 409 if there is one"`
		// ReplaceDigest is the digest of the Model that the user agreed to replace.
		ReplaceDigest string `json:"replace_digest,omitempty" maxLength:"128" doc:"With replace: digest of the Model that may be replaced, as in the list and in the 409; if another one is the default, the request fails with 409"`
	}
}) (*api.Body[modelJSON], error) {
	s := in.Body.ModelServer
	actions := []account.Action{account.ServerApply}
	if s.Key != "" {
		actions = append(actions, account.SecretWrite, account.SecretGrant)
	}
	d, err := h.checkModelServer(ctx, s, in.Body.Model, in.Body.Window, actions...)
	if err != nil {
		return nil, err
	}
	p := account.FromContext(ctx)
	current, err := h.Agents.DefaultModel(ctx, p) // nil if it is damaged: connecting a model repairs it
	if err != nil {
		return nil, err
	}
	var replace policy.Digest
	if current != nil {
		replace = current.Digest
		if !in.Body.Replace || in.Body.ReplaceDigest != "" && in.Body.ReplaceDigest != string(replace) {
			return nil, modelExists(current.ModelChoice)
		}
	}
	m, err := h.Assemblies.NewModel(&agents.ModelChoice{Name: agents.DefaultModelName, Model: *d.Spec.(*agents.Model)}, s.Key)
	if err == nil {
		err = testModel(ctx, m)
	}
	if err != nil {
		return nil, modelProblem(err, s.Key)
	}
	result, err := h.Agents.ConnectDefaultModel(ctx, p, d, s.Key, replace)
	if other, ok := errors.AsType[*agents.DefaultModelError](err); ok {
		err = modelExists(other.Model)
	}
	if err == nil && result.HasRefused() {
		err = refusedModel(result)
	}
	if err != nil {
		return nil, err
	}
	return api.BodyOf(h.ownModel(ctx))
}

// modelExists returns the error for a default Model that the user did not agree to
// replace.
func modelExists(m *agents.ModelChoice) error {
	return &api.Problem{Status: 409, Code: "model_exists", Digest: string(m.Digest), Detail: fmt.Sprintf("all users already have the model %s at %s", cmp.Or(m.Model.Model, m.Vendor), cmp.Or(m.Host(), m.Vendor)),
		Next: "set replace to replace the public Model default"}
}

// testModel returns an error unless the model answers a short request.
func testModel(ctx context.Context, m llm.Model) error {
	request := &llm.Request{MaxTokens: testTokens, Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("This is a connection test. Reply with OK.")}}}}
	for e, err := range m.Stream(ctx, request) {
		if err != nil {
			return err
		}
		if _, ok := e.(llm.Done); ok {
			return nil
		}
	}
	return errors.New("the server sent no answer")
}

// privateAddress returns the error for a server whose address is not public.
func privateAddress(reason string) error {
	return &api.Problem{Status: 422, Code: "model_address", Detail: reason, Next: "ask the operator of the hub to allow the address, or use another one"}
}

// listProblem reports why a server did not list its models. With the code model_list,
// the server works, but its models must be entered: it denies the list, as with a key
// for requests only, or has no list in the known form.
func listProblem(err error, key string) error {
	refused, ok := errors.AsType[*llm.StatusError](err)
	_, unreachable := errors.AsType[*url.Error](err)
	if ok && hasNoList(refused.Code) || !ok && !unreachable {
		return &api.Problem{Status: 422, Code: "model_list", Detail: "the server did not list its models: " + errorText(err, key), Next: "enter the name of a model"}
	}
	return modelProblem(err, key)
}

// hasNoList reports whether a status means that a server works, but lists no models.
func hasNoList(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return code < 500 || code == http.StatusNotImplemented
}

// modelProblem reports why a model cannot be used. The text may come from its
// server.
func modelProblem(err error, key string) error {
	if private, ok := errors.AsType[*vendors.AddressError](err); ok {
		return privateAddress(fmt.Sprintf("the address is not public (%s)", private.Kind))
	}
	p := &api.Problem{Status: 422, Code: "model", Next: "check the address, the key and the name of the model"}
	what := "the model cannot be used"
	if e, ok := errors.AsType[*llm.StatusError](err); ok && (e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden) {
		p.Code, what, p.Next = "model_key_rejected", "the server rejected the API key", "check the key"
	} else if _, ok := errors.AsType[*url.Error](err); ok {
		p.Code, what, p.Next = "model_unreachable", "the server cannot be reached", "check the address, and that the server runs"
	}
	p.Detail = what + ": " + errorText(err, key)
	return p
}

// errorText returns the text of an error without the key, shortened for the page.
func errorText(err error, key string) string {
	text := err.Error()
	if e, ok := errors.AsType[*llm.StatusError](err); ok { // without the vendor: the server may be another's
		text = fmt.Sprintf("%d %s", e.Code, cmp.Or(e.Message, e.Kind))
	}
	if key != "" {
		text = strings.ReplaceAll(text, key, "…")
	}
	if len(text) > maxModelError {
		text = strings.ToValidUTF8(text[:maxModelError], "") + "…"
	}
	return untrusted.New(text).ForPage()
}
