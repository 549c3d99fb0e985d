package session_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/loadout-dev/loadout/session"
)

func TestSetTypeNamesTheSetField(t *testing.T) {
	want := map[string]string{
		"Start": "begun", "Message": "message", "Loaded": "skill_loaded", "Unloaded": "skill_unloaded", "Used": "skill_used",
		"CallStarted": "call_started", "Result": "tool_result", "Notice": "notice", "Updated": "skill_updated", "Compacted": "compacted",
		"Branched": "branched",
	}
	for f := range reflect.TypeFor[session.Event]().Fields() {
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		var e session.Event
		reflect.ValueOf(&e).Elem().FieldByIndex(f.Index).Set(reflect.New(f.Type.Elem()))
		if e.SetType(); e.Type == "" || e.Type != want[f.Name] {
			t.Errorf("%s: got type %q, want %q", f.Name, e.Type, want[f.Name])
		}
	}
	e := session.Event{Type: "unknown"}
	if e.SetType(); e.Type != "unknown" {
		t.Errorf("without a field: got type %q", e.Type)
	}
}

// A log in memory shares no data with the events that are appended and read.
func TestMemoryLogCopiesEvents(t *testing.T) {
	for f := range reflect.TypeFor[session.Event]().Fields() {
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			e := session.Event{Seq: 1}
			fill(reflect.ValueOf(&e).Elem().FieldByIndex(f.Index))
			want := encode(t, e)
			var log session.MemoryLog
			if err := log.Append(t.Context(), &e); err != nil {
				t.Fatal(err)
			}
			clearFields(reflect.ValueOf(&e).Elem().FieldByIndex(f.Index))
			for _, changed := range []string{"appended", "read"} {
				events, err := log.Read(t.Context(), 0)
				if err != nil || len(events) != 1 {
					t.Fatalf("got events %v, error %v", events, err)
				}
				if got := encode(t, events[0]); got != want {
					t.Errorf("after the %s event changed: got %s, want %s", changed, got, want)
				}
				clearFields(reflect.ValueOf(&events[0]).Elem().FieldByIndex(f.Index))
			}
		})
	}
}

func encode(t *testing.T, e session.Event) string {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fill sets all fields below v except bytes, which are never modified.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	}
}

// clearFields clears the strings and booleans below v in place.
func clearFields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		clearFields(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			clearFields(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				clearFields(v.Field(i))
			}
		}
	case reflect.String, reflect.Bool:
		v.SetZero()
	}
}
