package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
)

// A pair is two servers with the same operations: ours, and one that registers them
// with [huma.Register].
type pair struct {
	ours, huma       *api.Server
	oursMux, humaMux *http.ServeMux
}

func newPair() *pair {
	p := &pair{oursMux: http.NewServeMux(), humaMux: http.NewServeMux()}
	o := api.Options{Log: slog.New(slog.DiscardHandler), Cookie: "c"}
	p.ours, p.huma = api.New(p.oursMux, o), api.New(p.humaMux, o)
	return p
}

// add adds an operation to both servers.
func add[I, O any](p *pair, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	same := op // registration changes what an operation points to
	if op.RequestBody != nil {
		same.RequestBody = new(*op.RequestBody)
	}
	same.Responses = maps.Clone(op.Responses)
	for status, r := range same.Responses {
		same.Responses[status] = new(*r)
	}
	api.Add(p.ours, op, f)
	api.AddWithHuma(p.huma, same, api.OperationTimeout, f)
}

// change changes a registered operation of both servers.
func (p *pair) change(path string, f func(*huma.PathItem)) {
	f(p.ours.OpenAPI().Paths[api.Prefix+path])
	f(p.huma.OpenAPI().Paths[api.Prefix+path])
}

type mode string

// Dry is embedded in inputs, and has the name of its field.
type Dry struct {
	Dry bool `query:"dry" doc:"Whether to change nothing"`
}

// params has a parameter of each kind that operations use.
type params struct {
	ID      string `path:"id" maxLength:"8" doc:"An ID"`
	Version string `path:"version" pattern:"^(current|[1-9][0-9]{0,3})$" patternDescription:"a number, or current"`
	Kind    string `path:"kind" enum:"Bot,Team"`
	api.Paging
	Words  string    `query:"q" required:"true" minLength:"2" maxLength:"10"`
	Sort   string    `query:"sort" enum:"name,title"`
	Mode   mode      `query:"mode" enum:"a,b" default:"a"`
	Flag   bool      `query:"flag"`
	On     bool      `query:"on" default:"true"`
	Many   []string  `query:"many,explode" maxItems:"3" doc:"Names"`
	Listed []string  `query:"listed" maxItems:"2"`
	Modes  []string  `query:"modes,explode" enum:"a,b"`
	Count  int64     `query:"count" minimum:"-2" maximum:"2"`
	Small  int       `query:"small" exclusiveMinimum:"0" exclusiveMaximum:"9" multipleOf:"2"`
	Mail   string    `query:"mail" format:"email"`
	Since  time.Time `query:"since" doc:"A time"`
	Match  string    `header:"If-Match" maxLength:"5"`
}

// size is a value whose JSON form may be a number or text.
type size struct {
	Bytes int
	wrong bool
}

func (s *size) UnmarshalJSON(data []byte) error {
	s.wrong = json.Unmarshal(data, &s.Bytes) != nil
	return nil
}

func (s *size) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if s.wrong {
		return []error{&huma.ErrorDetail{Location: at.String(), Message: "not a size"}}
	}
	return nil
}

func (size) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Description: "A size"} }

// part reports the values that it does not accept by itself.
type part struct {
	Name string `json:"name" minLength:"1" maxLength:"5"`
	Size size   `json:"size,omitzero"`
}

func (p *part) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if p.Name == "bad" {
		return []error{&huma.ErrorDetail{Location: at.With("name"), Message: "is bad"}, errors.New("no location")}
	}
	return nil
}

// Titled is embedded in a body.
type Titled struct {
	Title string `json:"title" minLength:"1" maxLength:"10" pattern:"^[a-z]*$"`
}

// document has a field of each kind that request bodies have.
type document struct {
	Titled
	Again    Titled          `json:"again,omitzero"`
	Count    int             `json:"count" minimum:"1" maximum:"10"`
	Ratio    float64         `json:"ratio,omitempty" exclusiveMinimum:"0"`
	Flag     *bool           `json:"flag,omitempty"`
	Text     *string         `json:"text,omitempty" maxLength:"5"`
	Null     *string         `json:"null" nullable:"true"`
	At       time.Time       `json:"at,omitzero"`
	Until    *time.Time      `json:"until,omitempty"`
	Kind     mode            `json:"kind,omitempty" enum:"a,b"`
	Kinds    []mode          `json:"kinds,omitempty" enum:"a,b" minItems:"1" maxItems:"2" uniqueItems:"true"`
	Parts    []part          `json:"parts" nullable:"false"`
	Pointers []*part         `json:"pointers,omitempty"`
	Named    map[string]part `json:"named,omitempty" maxProperties:"2"`
	Data     []byte          `json:"data,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Any      any             `json:"any,omitempty"`
	ID       string          `json:"id,omitempty" format:"uuid"`
	URL      string          `json:"url,omitempty" format:"uri"`
	Self     *document       `json:"self,omitempty"`
	ReadOnly string          `json:"read_only,omitempty" readOnly:"true"`
	Other    string          `json:"other,omitempty" dependentRequired:"text"`
	Hidden   string          `json:"hidden,omitempty" hidden:"true"`
}

// wrapper overrides the resolver of the struct that it embeds.
type wrapper struct {
	Part
	List []string `json:"list,omitempty"`
}

// Part is part with an exported name, so that it can be embedded.
type Part struct {
	Inner part `json:"inner"`
}

func (w *wrapper) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if len(w.List) > 1 {
		return []error{&huma.ErrorDetail{Location: at.With("list"), Message: "too long"}}
	}
	return nil
}

// broken cannot be encoded.
type broken struct{}

func (broken) MarshalJSON() ([]byte, error) { return nil, errors.New("broken") }

// echo returns its argument as JSON text.
func echo(v any) (*api.Body[string], error) {
	data, err := json.Marshal(v)
	return api.BodyOf(string(data), err)
}

// parityOperations returns two servers with operations of all kinds.
func parityOperations(t testing.TB) *pair {
	t.Helper()
	p := newPair()
	addReading(p)
	addWriting(p)
	addResponding(p)
	return p
}

// addReading adds operations with parameters.
func addReading(p *pair) {
	add(p, api.Operation("params", "GET", "/params/{id}/{version}/{kind}", "Parameters"), func(_ context.Context, in *params) (*api.Body[string], error) {
		return echo(in)
	})
	add(p, api.Operation("rest", "DELETE", "/rest/{path...}", "A path"), func(_ context.Context, in *struct {
		Path string `path:"path" maxLength:"10"`
	}) (*api.Body[string], error) {
		return echo(in)
	})
	add(p, api.PublicOperation("public", "GET", "/public", "No sign-in"), func(_ context.Context, in *api.NoBody) (*api.Body[string], error) {
		return echo(in)
	})
}

// addWriting adds operations with a request body.
func addWriting(p *pair) {
	add(p, api.WithCreated(api.Operation("create", "POST", "/documents", "A document")), func(_ context.Context, in *struct {
		Dry
		Key   string `header:"Idempotency-Key" maxLength:"5"`
		Limit int    `query:"limit" maximum:"5" doc:"A number"`
		Body  document
	}) (*api.CreatedBody[string], error) {
		data, err := json.Marshal(in)
		return api.CreatedAt("7", "documents", string(data), err)
	})
	small := api.Operation("small", "PUT", "/small", "A small list")
	small.MaxBodyBytes, small.BodyReadTimeout = 32, time.Minute
	add(p, small, func(_ context.Context, in *struct{ Body []int }) (*api.Body[string], error) { return echo(in) })
	add(p, api.Operation("any", "PUT", "/any", "Any value"), func(_ context.Context, in *struct{ Body any }) (*api.Body[string], error) { return echo(in) })
	add(p, api.Operation("optional", "PUT", "/optional", "An optional body"), func(_ context.Context, in *struct{ Body *Titled }) (*api.Body[string], error) {
		return echo(in)
	})
	add(p, api.Operation("wrapped", "PUT", "/wrapped", "A body with its own check"), func(_ context.Context, in *struct{ Body wrapper }) (*api.Body[string], error) {
		return echo(in)
	})
	add(p, api.Operation("map", "PUT", "/map", "A map"), func(_ context.Context, in *struct{ Body map[string]part }) (*api.Body[string], error) {
		return echo(in)
	})
	raw := api.Operation("raw", "PUT", "/raw", "Bytes")
	raw.MaxBodyBytes, raw.RequestBody = 16, &huma.RequestBody{Description: "Bytes"}
	add(p, raw, func(_ context.Context, in *struct {
		New     bool   `query:"new"`
		RawBody []byte `contentType:"application/yaml"`
	}) (*api.Body[string], error) {
		return echo(in)
	})
	large := api.Operation("large", "PUT", "/large", "Bytes, or none")
	large.MaxBodyBytes = api.MaxBody
	add(p, large, func(_ context.Context, in *struct{ RawBody []byte }) (*api.Body[string], error) { return echo(in) })
	p.change("/large", func(item *huma.PathItem) { item.Put.RequestBody.Required = false })
	add(p, api.Operation("unread", "PUT", "/unread", "A body that the operation ignores"), func(ctx context.Context, _ *api.NoBody) (*api.Body[string], error) {
		data, err := io.ReadAll(api.RequestFrom(ctx).HTTP.Body)
		return api.BodyOf(string(data), err)
	})
	p.change("/unread", func(item *huma.PathItem) { item.Put.RequestBody = &huma.RequestBody{Required: true} })
}

// addResponding adds operations with a response of each kind.
func addResponding(p *pair) {
	type named struct {
		Name string `query:"name"`
	}
	add(p, api.Operation("nothing", "DELETE", "/nothing", "No response"), func(context.Context, *api.NoBody) (*api.NoBody, error) { return &api.NoBody{}, nil })
	add(p, api.WithCreated(api.Operation("nil", "POST", "/nil", "A nil response")), func(context.Context, *api.NoBody) (*api.Body[string], error) { return nil, nil })
	add(p, api.Operation("headers", "POST", "/headers", "Headers"), func(_ context.Context, in *named) (*struct {
		SetCookie http.Cookie `header:"Set-Cookie"`
		ETag      string      `header:"ETag" doc:"A tag"`
		Robots    string      `header:"X-Robots-Tag"`
		Body      []string
	}, error) {
		out := &struct {
			SetCookie http.Cookie `header:"Set-Cookie"`
			ETag      string      `header:"ETag" doc:"A tag"`
			Robots    string      `header:"X-Robots-Tag"`
			Body      []string
		}{ETag: in.Name, Robots: "none", Body: []string{in.Name}}
		if in.Name == "n" {
			out.SetCookie = http.Cookie{Name: in.Name, Value: "v", Path: "/", HttpOnly: true}
		}
		return out, nil
	})
	stream := api.Operation("stream", "GET", "/stream", "A stream")
	stream.Responses = map[string]*huma.Response{"200": {Description: "A stream", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	add(p, stream, func(_ context.Context, in *named) (*huma.StreamResponse, error) {
		if in.Name == "" {
			return nil, api.NewProblem(422, "no name", "send one")
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			_, w := humago.Unwrap(ctx)
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(203)
			fmt.Fprintf(w, "data: %s %s\n\n", ctx.Operation().OperationID, in.Name)
		}}, nil
	})
	add(p, api.Operation("fail", "GET", "/fail", "Errors"), func(_ context.Context, in *named) (*api.Body[broken], error) {
		return &api.Body[broken]{}, map[string]error{
			"unknown": errors.New("open /secret"), "hidden": &account.DeniedError{Hidden: true}, "sign_in": &account.DeniedError{SignIn: true},
			"often": &account.RateLimitError{RetryAfter: time.Minute}, "canceled": context.Canceled, "busy": store.ErrBusy, "huma": huma.Error409Conflict("in use"),
		}[in.Name]
	})
}

// request is a request to both servers.
type request struct {
	method, path, body string
	header             string // as NAME: VALUE, separated by |
	status             int    // expected
}

// send sends a request to a server and returns its response as text.
func (r request) send(h http.Handler, p account.Principal, body io.Reader) (status int, response string) {
	q := httptest.NewRequest(r.method, api.Prefix+r.path, body)
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for line := range strings.SplitSeq(r.header, "|") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			q.Header.Set(name, value)
		}
	}
	ctx := api.WithRequest(q.Context(), &api.Request{ID: "r1", HTTP: q})
	w := httptest.NewRecorder()
	panicked := func() (v any) {
		defer func() { v = recover() }()
		h.ServeHTTP(w, q.WithContext(account.NewContext(ctx, p)))
		return nil
	}()
	got := w.Result()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", got.Status)
	got.Header.Write(&text)
	fmt.Fprintf(&text, "\n%s\npanic: %v\n", w.Body, panicked)
	return got.StatusCode, text.String()
}
