package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

// get returns requests to the operation with parameters, with the given queries.
func get(status int, queries ...string) []request {
	var out []request
	for _, q := range queries {
		out = append(out, request{method: "GET", path: "/params/a/current/Bot?q=ab" + q, status: status})
	}
	return out
}

// put returns requests with the given bodies.
func put(status int, path string, bodies ...string) []request {
	var out []request
	for _, body := range bodies {
		out = append(out, request{method: "PUT", path: path, body: body, status: status})
	}
	return out
}

// create returns requests to create a document with the given members, beside those
// that are required.
func create(status int, members ...string) []request {
	var out []request
	for _, m := range members {
		out = append(out, request{method: "POST", path: "/documents", body: `{"title":"a","count":1,"null":null,"parts":[],` + m + `}`, status: status})
	}
	return out
}

// all returns requests with the given method and status.
func all(status int, method string, paths ...string) []request {
	var out []request
	for _, path := range paths {
		out = append(out, request{method: method, path: path, status: status})
	}
	return out
}

// invalid is the status of requests with invalid values.
const invalid = http.StatusUnprocessableEntity

// parameterRequests have well-formed and malformed parameters.
func parameterRequests() []request {
	return concat(
		get(200, "", "&after=x", "&limit=1", "&limit=500", "&limit=%2B7", "&sort=title", "&mode=b", "&flag=true", "&flag=1", "&flag=F", "&flag=", "&on=false", "&on=",
			"&many=x", "&many=x&many=y&many=z", "&many=&many=x", "&many=x,y", "&many=x&many=", "&listed=x,y", "&listed=,", "&listed=x&listed=y", "&modes=a&modes=b",
			"&count=-2", "&count=0", "&count=", "&small=8", "&mail=a@example.com", "&since=2026-01-02T03:04:05Z", "&since=2026-01-02T03:04:05.678%2B02:00", "&since=", "&after=%C3%A4%20%26", "&after=a+b", "&unknown=x", "&q=xyz", "&after=%zz", "&Limit=9999", "&after=%FF"),
		get(invalid, "&limit=0", "&limit=501", "&limit=x", "&limit=1.5", "&limit=99999999999999999999", "&limit=0x10", "&sort=x", "&sort=Name", "&mode=c",
			"&flag=yes", "&flag=2", "&on=x", "&many=1&many=2&many=3&many=4", "&listed=1,2,3", "&modes=a&modes=x", "&count=3", "&count=-3", "&small=0", "&small=9", "&small=3", "&mail=x", "&since=2026-01-02", "&since=2026-01-02T03:04:05", "&since=yesterday",
			"&after="+strings.Repeat("x", 2001), "&limit=0&sort=x&flag=yes&many=1&many=2&many=3&many=4"),
		all(invalid, "GET", "/params/a/current/Bot", "/params/a/current/Bot?q=", "/params/a/current/Bot?q=a", "/params/a/current/Bot?q=abcdefghijk", "/params/123456789/current/Bot?q=ab",
			"/params/a/0/Bot?q=ab", "/params/a/x/Bot?q=ab", "/params/a/current/bot?q=ab", "/params/a/current/x?limit=x", "/params/%20/x%2Fy/Bot?q=ab"),
		all(200, "GET", "/params/%C3%A4/1/Team?q=%C3%A4%C3%A4", "/params/a%20b/9999/Bot?q=ab", "/public", "/public?x=1"),
		all(200, "HEAD", "/params/a/1/Bot?q=ab", "/public"),
		all(404, "GET", "/params/a/current", "/params/a/current/Bot/more"),
		all(200, "DELETE", "/rest/a/b/c", "/rest/a%2Fb"),
		all(invalid, "DELETE", "/rest/", "/rest/a/b/c/d/e/f"),
		all(405, "POST", "/public"),
		[]request{
			{"GET", "/params/a/1/Bot?q=ab", "", "If-Match: abcde", 200},
			{"GET", "/params/a/1/Bot?q=ab", "", "If-Match: abcdef", invalid},
			{"GET", "/params/a/1/Bot?q=ab", "", "Accept: text/html", 200},
			{"GET", "/params/a/1/Bot?q=ab", "", "Accept: json;q=0.5", 200},
			{"GET", "/params/a/1/Bot?q=x", "", "Accept: application/xml, application/json;q=0.1", invalid},
			{"GET", "/params/a/1/Bot?q=ab", "ignored", "", 200},
		},
	)
}

const someID = `"2d1c9a1e-5d0a-4f6b-9a51-0c8f2a3b4c5d"`

// documentRequests have well-formed and malformed bodies with members of all types.
func documentRequests() []request {
	return concat(
		create(200+1, `"ratio":0.5`, `"flag":null`, `"flag":false,"text":"abcde"`, `"text":null`, `"at":"2026-01-02T03:04:05Z","until":"2026-01-02T03:04:05.123+02:00"`, `"kind":"a","kinds":["a","b"]`,
			`"parts":[{"name":"x"},{"name":"y","size":7}]`, `"pointers":[{"name":"x"}]`, `"named":{"a":{"name":"x"}}`, `"again":null`,
			`"data":"eHl6"`, `"raw":{"a":[1]}`, `"any":[1,"x",{"y":null}]`, `"id":`+someID, `"url":"https://example.com"`, `"self":{"title":"b","count":2,"null":"x","parts":[]}`, `"read_only":""`,
			`"other":"x","text":"y"`, `"hidden":"x"`, `"again":{"title":"b"}`, `"count":2`, `"Title":"b"`,
			`"self":{"title":"b","count":2,"null":"x","parts":[{"name":"bad"}]}`),
		create(invalid, `"ratio":0`, `"ratio":"x"`, `"flag":"true"`, `"flag":1`, `"text":"abcdef"`, `"text":7`, `"at":"yesterday"`, `"at":7`, `"until":""`, `"kind":"c"`, `"kind":1`, `"kinds":[]`,
			`"kinds":["a","a"]`, `"kinds":["a","b","c"]`, `"kinds":"a"`, `"parts":null`, `"parts":{}`, `"parts":[null]`, `"parts":[{}]`, `"parts":[{"name":""}]`, `"parts":[{"name":"toolong"}]`,
			`"parts":[{"name":"bad"}]`, `"parts":[{"name":"x","size":"big"},{"name":"bad"}]`, `"pointers":[{"name":"bad"},null]`, `"named":{"k":{"name":"bad"}}`, `"named":{"b.c":{"name":"x","size":"3"}}`,
			`"named":{"a":{"name":"x"},"b":{"name":"x"},"c":{"name":"x"}}`, `"named":[]`, `"data":"?"`, `"data":[1]`, `"id":"x"`, `"url":"%zz"`, `"self":{}`, `"pointers":[null]`,
			`"other":"x"`, `"unknown":1`, `"again":{}`, `"title":"é"`, `"count":0`, `"count":11`, `"count":1.5`, `"count":"1"`, `"count":null`, `"title":""`, `"title":"ABC"`, `"title":"abcdefghijk"`, `"null":7`,
			`"count":99999999999999999999`, `"parts":[`+strings.Repeat(`{"name":""},`, 150)+`{}]`),
		[]request{
			{"POST", "/documents", "", "", 400}, {"POST", "/documents", " ", "", 400}, {"POST", "/documents", "{", "", 400}, {"POST", "/documents", `{"title":}`, "", 400},
			{"POST", "/documents", "{}", "", invalid}, {"POST", "/documents", "null", "", invalid}, {"POST", "/documents", "[]", "", invalid}, {"POST", "/documents", `"x"`, "", invalid},
			{"POST", "/documents", "{} {}", "", 400}, {"POST", "/documents", "\ufeff{}", "", 400}, {"POST", "/documents", "{\"title\":\"\xff\"}", "", invalid}, {"POST", "/documents", "\x00", "", 400},
			{"POST", "/documents", strings.Repeat("[", 20_000), "", 400}, {"POST", "/documents", strings.Repeat(" ", 1<<20-1) + "{", "", 413}, {"POST", "/documents", strings.Repeat(" ", 1<<20-2) + "{", "", 400},
			{"POST", "/documents?dry=x&limit=9", "{}", "Idempotency-Key: toolong", invalid}, {"POST", "/documents?dry=x", "{", "", 400}, {"POST", "/documents?limit=6", "", "", 400},
		},
	)
}

// bodyRequests have bodies of other types, sizes and content types.
func bodyRequests() []request {
	return concat(
		put(200, "/small", "[]", "[1,2]", "null", " [ 1 ] "), put(invalid, "/small", "{}", `["x"]`, "[1.5]", "1", "[null]"), put(400, "/small", "", "[1,", "[1]]"), put(413, "/small", strings.Repeat(" ", 32), strings.Repeat(" ", 33)),
		put(200, "/any", "", "1", `"x"`, "null", "[]", `{"a":1}`), put(400, "/any", "x", `{"a":1e400}`),
		put(200, "/optional", "", `{"title":"a"}`), put(invalid, "/optional", "{}", "[]", `{"title":"A"}`, "null"), put(400, "/optional", " ", "x"),
		put(200, "/wrapped", `{"inner":{"name":"x"}}`, `{"inner":{"name":"x"},"list":["y"]}`, `{"inner":{"name":"bad"}}`), put(invalid, "/wrapped", `{"inner":{"name":"bad"},"list":["x","y"]}`),
		put(200, "/map", `{}`, `{"a":{"name":"x"}}`), put(invalid, "/map", `{"a":{"name":"bad"}}`, `{"a.b":{"name":"x","size":"?"}}`, "[]", `{"a":null}`),
		put(200, "/raw", "x", "{", "\x00\xff", strings.Repeat("x", 15)), put(400, "/raw", ""), put(413, "/raw", strings.Repeat("x", 16)), put(invalid, "/raw?new=x", "x"),
		put(200, "/large", "", "x", strings.Repeat("x", 2<<20)), put(200, "/unread", "", "x"),
		[]request{
			{"PUT", "/small", "[]", "Content-Type: ", 200}, {"PUT", "/small", "[]", "Content-Type: application/json; charset=utf-8", 200}, {"PUT", "/small", "[]", "Content-Type: application/x+json", 200},
			{"PUT", "/small", "[]", "Content-Type: text/plain", 415}, {"PUT", "/small", "[]", "Content-Type: application/cbor", 415}, {"PUT", "/small", "[", "Content-Type: ;", 400}, {"PUT", "/small", "", "Content-Type: text/plain", 400},
			{"PUT", "/raw", "x", "Content-Type: text/plain", 200}, {"PUT", "/raw", "x", "Content-Type: ", 200},
		},
	)
}

// responseRequests get a response of each kind.
func responseRequests() []request {
	return concat(
		all(204, "DELETE", "/nothing"), all(201, "POST", "/nil"), all(200, "POST", "/headers", "/headers?name=n"), all(203, "GET", "/stream?name=n"), all(invalid, "GET", "/stream"),
		all(200, "GET", "/fail?name=none"), all(500, "GET", "/fail?name=unknown", "/fail?name=huma"), all(404, "GET", "/fail?name=hidden"), all(401, "GET", "/fail?name=sign_in"), all(429, "GET", "/fail?name=often"), all(503, "GET", "/fail?name=canceled", "/fail?name=busy"),
		all(405, "PUT", "/nothing"),
	)
}

func concat(lists ...[]request) []request {
	var out []request
	for _, list := range lists {
		out = append(out, list...)
	}
	return out
}

// All requests get the response that they get from huma.Register.
func TestParityWithHuma(t *testing.T) {
	p := parityOperations(t)
	for _, r := range concat(parameterRequests(), documentRequests(), bodyRequests(), responseRequests()) {
		for _, user := range []account.Principal{reader, {}} {
			status, got := r.send(p.oursMux, user, bodyReader(r))
			_, want := r.send(p.humaMux, user, bodyReader(r))
			what := fmt.Sprintf("%s %.200s %.200q %s", r.method, r.path, r.body, r.header)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the response is not that of huma.Register\n%s", what, diff)
			}
			if !user.Anonymous() && status != r.status {
				t.Errorf("%s: %.500s; want %d", what, got, r.status)
			}
		}
	}
}

func bodyReader(r request) io.Reader {
	if r.body == "" && (r.method == "GET" || r.method == "DELETE" || r.method == "HEAD") {
		return nil
	}
	return strings.NewReader(r.body)
}

// Bodies that cannot be read get the response that they get from huma.Register.
func TestParityOfUnreadableBodies(t *testing.T) {
	p := parityOperations(t)
	for _, tt := range []struct {
		err    error
		status int
	}{{os.ErrDeadlineExceeded, 408}, {errors.New("reset"), 500}, {&http.MaxBytesError{Limit: 7}, 500}} {
		for _, path := range []string{"/small", "/raw", "/raw?new=x"} {
			r := request{method: "PUT", path: path}
			status, got := r.send(p.oursMux, reader, failingBody(tt.err))
			_, want := r.send(p.humaMux, reader, failingBody(tt.err))
			if diff := cmp.Diff(want, got); diff != "" || status != tt.status {
				t.Errorf("%s, %v: status %d, want %d\n%s", path, tt.err, status, tt.status, diff)
			}
		}
	}
}

// failingBody returns a body that can be read in part.
func failingBody(err error) io.Reader {
	return io.MultiReader(strings.NewReader("[1"), readerFunc(func([]byte) (int, error) { return 0, err }))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// The OpenAPI document is the same as with huma.Register.
func TestParityOfDocument(t *testing.T) {
	p := parityOperations(t)
	got, err := json.MarshalIndent(p.ours.OpenAPI(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.MarshalIndent(p.huma.OpenAPI(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// benchmarkRequests are requests with parameters, with a body, with invalid values,
// and for a stream.
var benchmarkRequests = map[string]request{
	"params":  {"GET", "/params/a/current/Bot?q=ab&limit=7&many=x&many=y", "", "If-Match: a", 200},
	"body":    {"POST", "/documents?limit=1", `{"title":"a","count":1,"null":null,"parts":[{"name":"x","size":7},{"name":"y"}]}`, "", 201},
	"invalid": {"POST", "/documents", `{"title":"A","count":0,"parts":[{"name":"bad"}]}`, "", invalid},
	"raw":     {"PUT", "/raw", "some bytes", "", 200},
	"stream":  {"GET", "/stream?name=n", "", "", 203},
}

func BenchmarkRequest(b *testing.B) {
	p := parityOperations(b)
	for name, r := range benchmarkRequests {
		for server, mux := range map[string]http.Handler{"ours": p.oursMux, "huma": p.humaMux} {
			b.Run(name+"/"+server, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r.send(mux, reader, bodyReader(r))
				}
			})
		}
	}
}

// raceEnabled is set by a file that is built with the race detector.
var raceEnabled bool

// A request allocates no more memory than with huma.Register. The race detector lets pools
// drop values at random.
func TestParityOfAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector changes the number of allocations")
	}
	p := parityOperations(t)
	for name, r := range benchmarkRequests {
		allocs := func(mux http.Handler) float64 {
			return testing.AllocsPerRun(200, func() { r.send(mux, reader, bodyReader(r)) })
		}
		if got, most := allocs(p.oursMux), allocs(p.humaMux); got > most {
			t.Errorf("%s: %.0f allocations, more than %.0f", name, got, most)
		}
	}
}
