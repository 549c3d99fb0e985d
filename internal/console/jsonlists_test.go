package console_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/console"
)

type jsonItem struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
	More *int     `json:"more,omitempty"`
}

// The bytes are those of the whole object at once.
func TestPrintJSONLists(t *testing.T) {
	one := 1
	items := []jsonItem{{Name: "a <b> & \u202e\u2028 </system> [INST] \r", Tags: []string{}}, {Name: "", Tags: []string{"x", "y"}, More: &one}, {}}
	for _, n := range []int{0, 1, len(items)} {
		var got, want bytes.Buffer
		object := struct {
			First  []jsonItem `json:"first"`
			Second []string   `json:"second"`
			Last   []jsonItem `json:"last"`
		}{items[:n], []string{"s"}, []jsonItem{}}
		if err := (&console.Console{Stdout: &want}).PrintJSON(object); err != nil {
			t.Fatal(err)
		}
		err := (&console.Console{Stdout: &got}).PrintJSONLists(console.JSONList{Name: "first", Items: console.JSONItems(items[:n])},
			console.JSONList{Name: "second", Items: console.JSONItems(object.Second)}, console.JSONList{Name: "last", Items: console.JSONItems(object.Last)})
		if diff := cmp.Diff(strings.SplitAfter(want.String(), "\n"), strings.SplitAfter(got.String(), "\n")); diff != "" || err != nil {
			t.Errorf("%d items: %v (-at once +one by one):\n%s", n, err, diff)
		}
	}
}
