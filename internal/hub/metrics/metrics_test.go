package metrics

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

var update = flag.Bool("update", false, "write testdata/metrics.txt")

func expect(t *testing.T, m *Metrics, lines ...string) {
	t.Helper()
	text := "\n" + string(m.Text())
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, "{")
			t.Errorf("no %q", line)
			for l := range strings.Lines(text) {
				if strings.HasPrefix(l, name) {
					t.Log(l)
				}
			}
		}
	}
}

// Dashboards and alerts use the names, labels, types, units and buckets of all
// metrics.
func TestMetricsMatchFile(t *testing.T) {
	const file = "testdata/metrics.txt"
	synctest.Test(t, func(t *testing.T) {
		m := New("v1.2.3")
		m.SetState(someState())
		countEverything(t, m)
		got := withoutProcessValues(string(m.Text()))
		for _, f := range m.families {
			if !strings.Contains(got, "# TYPE "+f.name+" ") {
				t.Errorf("the test does not change %s", f.name)
			}
		}
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "linux" { // which has more metrics of processes
			got, want = withoutProcess(got), []byte(withoutProcess(string(want)))
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("the metrics differ from %s (-want +got); if this is intended, run the test with -update:\n%s", file, diff)
		}
	})
}

// countEverything changes each metric.
func countEverything(t *testing.T, m *Metrics) {
	t.Helper()
	m.CountRequest("GET /skills", 200, 7*time.Millisecond, false)
	m.CountRequest("GET /skills", 200, 40*time.Second, false) // more than the last bucket
	m.CountRequest("GET /skills", 503, 10*time.Millisecond, false)
	m.CountRequest("GET /{quoted \"name\"}\\", 404, time.Microsecond, false)
	t.Cleanup(m.CountStream("GET /events"))
	m.CountSignIn("password", nil)
	m.CountSignIn("provider", errors.New("refused"))
	turn := m.ObserveTurn(nil, chat.MessageInput)
	turn.Step(&session.Event{Loaded: &session.SkillLoad{}})
	turn.Step(&session.Event{Result: &session.CallResult{}})
	time.Sleep(3 * time.Second)
	turn.End(chat.Done, nil)
	m.ObserveTurn(nil, chat.MessageInput).End(chat.Done, errors.New("shutting down"))
	done := llm.Done{Answer: llm.Answer{Usage: llm.Usage{Input: 3_000_000, CacheRead: 1, Output: 5}}}
	for _, a := range []answers{{"a:1", []llm.Event{done}, nil}, {"b:2", nil, errors.New("cut")}} {
		for range m.CountModel(a).Stream(t.Context(), &llm.Request{}) {
		}
	}
}

// someState returns a state with a different value for each metric.
func someState() State {
	two := func(a, b int) func() (int, int) { return func() (int, int) { return a, b } }
	return State{Turns: two(1, 2), Runs: two(3, 4), SignIns: two(5, 6), Bus: func() error { return nil }, DiskFree: func() (uint64, bool) { return 1 << 40, true },
		Pools: func() map[string]sql.DBStats {
			return map[string]sql.DBStats{"write": {OpenConnections: 1}, "read": {OpenConnections: 8, InUse: 9, WaitCount: 10, WaitDuration: 1500 * time.Millisecond}}
		}}
}

// withoutProcessValues replaces the values of metrics that describe the process
// of the test.
func withoutProcessValues(text string) string {
	text = regexp.MustCompile(`(?m)^((?:go|process)_\S+) \S+$`).ReplaceAllString(text, "$1 VALUE")
	return strings.ReplaceAll(text, runtime.Version(), "VERSION")
}

func withoutProcess(text string) string {
	return regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?process_.*\n`).ReplaceAllString(text, "")
}

func TestRequests(t *testing.T) {
	m := New("v1.2.3")
	m.CountRequest("/things", 200, 3*time.Millisecond, false)
	m.CountRequest("/things", 200, time.Hour, true) // the duration of a stream says nothing
	for _, route := range []string{"", "/"} {
		m.CountRequest(route, 404, time.Millisecond, false)
	}
	done := m.CountStream("/events")
	m.CountStream("/")()
	m.CountSignIn("password", nil)
	m.CountSignIn("password", errors.New("wrong"))
	expect(t, m, `loadout_http_requests_total{route="/things",status="200"} 2`, `loadout_http_request_seconds_count{route="/things"} 1`, `loadout_http_requests_total{route="none",status="404"} 2`,
		`loadout_http_streams{route="/events"} 1`, `loadout_http_streams{route="none"} 0`, `loadout_sign_ins_total{by="password",result="ok"} 1`, `loadout_sign_ins_total{by="password",result="refused"} 1`,
		`loadout_build_info{version="v1.2.3"} 1`, `loadout_skill_loads_total 0`)
	done()
	expect(t, m, `loadout_http_streams{route="/events"} 0`)
}

func TestSkillUses(t *testing.T) {
	m := New("x")
	for _, u := range []mcpserver.Use{{Kind: "load"}, {Kind: "load", Refused: true}, {Kind: "load", Failed: true}, {Kind: "file"}} {
		m.CountUse(u)
	}
	expect(t, m, "loadout_skill_loads_total 1")
}

func TestCallOutcomes(t *testing.T) {
	m := New("x")
	decide := func(effect policy.Record) func(context.Context) {
		return func(ctx context.Context) { RecordDecision(ctx, effect) }
	}
	allow := policy.Record{Decision: policy.Allow}
	deny := policy.Record{Decision: policy.Deny}
	unknown := policy.Record{Decision: policy.Deny, Details: map[string]string{"code": string(decision.UnknownTool)}}
	failed := errors.New("failed")
	for _, tt := range []struct {
		outcome string
		decide  []func(context.Context)
		res     mcp.Result
		err     error
	}{
		{"ok", nil, &mcp.CallToolResult{}, nil},
		{"ok", []func(context.Context){decide(deny), decide(allow)}, &mcp.CallToolResult{}, nil},
		{"denied", []func(context.Context){decide(deny)}, &mcp.CallToolResult{IsError: true}, nil},
		{"denied", []func(context.Context){decide(allow), decide(deny)}, &mcp.CallToolResult{IsError: true}, nil},
		{"error", []func(context.Context){decide(deny), decide(allow)}, &mcp.CallToolResult{IsError: true}, nil},
		{"error", []func(context.Context){decide(unknown)}, &mcp.CallToolResult{IsError: true}, nil},
		{"error", nil, nil, failed},
		{"error", nil, nil, nil},
	} {
		before := string(m.Text())
		res, err := m.Instrument(t.Context(), func(ctx context.Context) (mcp.Result, error) {
			for _, f := range tt.decide {
				f(ctx)
			}
			return tt.res, tt.err
		})
		if res != tt.res || err != tt.err {
			t.Errorf("%s: returned %v, %v", tt.outcome, res, err)
		}
		line := func(n int) string { return fmt.Sprintf("loadout_tool_calls_total{outcome=%q} %d\n", tt.outcome, n) }
		n := 0
		for i := range 9 {
			if strings.Contains(before, line(i)) {
				n = i
			}
		}
		if !strings.Contains(string(m.Text()), line(n+1)) {
			t.Errorf("%s of %+v is not counted", tt.outcome, tt.res)
		}
	}
	RecordRefusal(t.Context(), true) // outside a call
	for _, tt := range []struct {
		r    session.CallResult
		want string
	}{{session.CallResult{}, "ok"}, {session.CallResult{Error: true}, "error"}, {session.CallResult{Denied: true}, "denied"}, {session.CallResult{Denied: true, Error: true}, "denied"}} {
		if got := callOutcome(&tt.r); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.r, got, tt.want)
		}
	}
}

// answers is a model with fixed events.
type answers struct {
	name   string
	events []llm.Event
	err    error
}

func (a answers) Name() string { return a.name }
func (a answers) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for _, e := range a.events {
			if !yield(e, nil) {
				return
			}
		}
		if a.err != nil {
			yield(nil, a.err)
		}
	}
}

func TestModelRequests(t *testing.T) {
	m := New("x")
	done := llm.Done{Answer: llm.Answer{Usage: llm.Usage{Input: 3, CacheRead: 4, CacheWrite: -1, Output: 5}}}
	for _, a := range []answers{{"vendor:a", []llm.Event{llm.TextDelta("x"), done}, nil}, {"vendor:b", []llm.Event{llm.TextDelta("x")}, errors.New("cut")}, {"demo", []llm.Event{done}, nil}} {
		n := 0
		for range m.CountModel(a).Stream(t.Context(), &llm.Request{}) {
			n++
		}
		if want := len(a.events); n != want && a.err == nil || a.err != nil && n != want+1 {
			t.Errorf("%s: %d events", a.name, n)
		}
	}
	for range m.CountModel(answers{"vendor:c", []llm.Event{llm.TextDelta("x"), done}, nil}).Stream(t.Context(), &llm.Request{}) {
		break
	}
	expect(t, m, `loadout_model_requests_total{outcome="ok",vendor="vendor"} 1`, `loadout_model_requests_total{outcome="error",vendor="vendor"} 1`, `loadout_model_requests_total{outcome="stopped",vendor="vendor"} 1`,
		`loadout_model_requests_total{outcome="ok",vendor="demo"} 1`, `loadout_model_tokens_total{kind="input",vendor="vendor"} 3`, `loadout_model_tokens_total{kind="cache_read",vendor="vendor"} 4`,
		`loadout_model_tokens_total{kind="cache_write",vendor="vendor"} 0`, `loadout_model_tokens_total{kind="output",vendor="vendor"} 5`)
}

func TestState(t *testing.T) {
	two := func(a, b int) func() (int, int) { return func() (int, int) { return a, b } }
	var bus error
	known := true
	m := New("x")
	m.SetState(State{Turns: two(1, 2), Runs: two(3, 4), SignIns: two(5, 6), Bus: func() error { return bus }, DiskFree: func() (uint64, bool) { return 7, known },
		Pools: func() map[string]sql.DBStats {
			return map[string]sql.DBStats{"read": {OpenConnections: 8, InUse: 9, WaitCount: 10, WaitDuration: 11 * time.Second}}
		}})
	expect(t, m, "loadout_turns_under_way 1", "loadout_turns_waiting 2", "loadout_runs_under_way 3", "loadout_runs_waiting 4", "loadout_sign_ins_under_way 5", "loadout_sign_ins_waiting 6", "loadout_disk_free_bytes 7",
		`loadout_db_connections{pool="read"} 8`, `loadout_db_connections_in_use{pool="read"} 9`, `loadout_db_waits_total{pool="read"} 10`, `loadout_db_wait_seconds_total{pool="read"} 11`, "loadout_bus_healthy 1")
	bus, known = errors.New("disconnected"), false
	expect(t, m, "loadout_bus_healthy 0")
	if text := string(m.Text()); strings.Contains(text, "loadout_disk_free_bytes") {
		t.Error("unknown free space is exported")
	}
}
