package tools_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/tools"
)

// K18: the first server wins a duplicate name. Tools are listed in the order of the
// configuration and then by name, whatever connected first.
func TestK18FirstOfANameAndOneOrder(t *testing.T) {
	own := func(name, arg string) *upstream.Config {
		return &upstream.Config{Name: name, Type: upstream.Stdio, Command: name, Args: []string{arg}}
	}
	w := newWorld(t, nil, "", func(o *tools.TestOptions, _ *world) {
		o.Own = []*upstream.Config{own("a", "only"), own("b", "first"), own("b", "second")}
	})
	w.Connect(t.Context(), "b") // before a
	want := []string{"a__read_note", "a__write_note", "b__read_note", "b__write_note"}
	for range 2 {
		w.Connect(t.Context(), "")
		found, err := w.Find(t.Context(), tools.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if got := namesOf(found.Tools); !slices.Equal(got, want) {
			t.Errorf("the tools are %v, want %v", got, want)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.configs {
		if c.Name == "b" && c.Args[0] != "first" {
			t.Errorf("the server b is the %s", c.Args[0])
		}
	}
}

// K18: arguments are converted to the types of the schema where that is unambiguous, and
// validated before the call.
func TestK18ArgumentsAreFittedAndChecked(t *testing.T) {
	w := newWorld(t, nil, "mcpServers: {b: {command: b}}", nil)
	for _, tt := range []struct {
		name, args string
		problems   int // 0 is that it is called
	}{
		{"as they should be", `{"text":"x","times":2}`, 0},
		{"a number as a text", `{"text":"x","times":"2"}`, 0},
		{"a text that looks like a number stays one", `{"text":"2"}`, 0},
		{"a text that is no number", `{"text":"x","times":"two"}`, 1},
		{"a text that is another kind", `{"text":"x","times":"[2]"}`, 1},
		{"a text that is half a number", `{"text":"x","times":"2.5"}`, 1},
		{"one that can be mended and one that cannot", `{"times":"2"}`, 2},
		{"no object", `["x"]`, 1},
		{"all wrong", `{"times":"two","colour":1}`, 3},
	} {
		c := &tools.Call{Name: "b__read_note", Arguments: json.RawMessage(tt.args)}
		_, err := w.Call(t.Context(), c)
		bad, refused := errors.AsType[*tools.ArgumentsError](err)
		if err != nil && !refused {
			t.Fatal(err)
		}
		if refused != (tt.problems > 0) || refused && len(bad.Problems) != tt.problems {
			t.Errorf("%s: %v, want %d problems", tt.name, err, tt.problems)
		}
		if string(c.Arguments) != tt.args {
			t.Errorf("%s: what the caller holds became %s", tt.name, c.Arguments)
		}
	}
}
