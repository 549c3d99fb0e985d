package plainjson_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/plainjson"
)

func TestEncode(t *testing.T) {
	v := map[string]any{"b": "<&>\n", "a": []int{1}}
	for _, c := range []struct {
		name   string
		encode func(any) ([]byte, error)
		want   string
	}{
		{"line", plainjson.Line, `{"a":[1],"b":"<&>\n"}`},
		{"indented", plainjson.Indented, "{\n  \"a\": [\n    1\n  ],\n  \"b\": \"<&>\\n\"\n}\n"},
	} {
		if got, err := c.encode(v); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if got, err := c.encode(func() {}); err == nil {
			t.Errorf("%s: a function is %q", c.name, got)
		}
	}
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : 1.10, "a" : [ 9007199254740993 ] } `: `{"a":[9007199254740993],"b":1.10}`,
		`"\u003csvg"`: `"<svg"`,
		`null`:        `null`,
		``:            "", `{`: "", `1 2`: "", `{}}`: "",
	} {
		got, err := plainjson.Canonical([]byte(in))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
}
