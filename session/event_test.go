package session_test

import (
	"reflect"
	"testing"

	"github.com/loadout-dev/loadout/session"
)

func TestSetTypeNamesTheSetField(t *testing.T) {
	want := map[string]string{
		"Start": "begun", "Message": "message", "Loaded": "skill_loaded", "Unloaded": "skill_unloaded", "Used": "skill_used",
		"CallStarted": "call_started", "Result": "tool_result", "Notice": "notice", "Updated": "skill_updated", "Compacted": "compacted",
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
