package terminal

import (
	"encoding/json"
	"testing"
)

func TestArguments(t *testing.T) {
	files := map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"}
	before := func(path string) (string, bool) { text, ok := files[path]; return text, ok }
	for _, tt := range []struct{ name, tool, args, want string }{
		{"each by its name", "fetch", `{"url":"https://example.com","deep":{"a":[1]},"n":2,"none":null}`, "url: https://example.com\ndeep:\n  {\n    \"a\": [\n      1\n    ]\n  }\nn: 2\nnone: null\n"},
		{"several lines", "run_command", `{"command":"a\nb\n"}`, "command:\n  a\n  b\n"},
		{"a file that is changed", "mcp.workspace.write_file", `{"path":"a.txt","content":"one\ntwo\nthree\n4\nfive\nsix\nseven\n"}`, "path: a.txt\n  two\n  three\n- four\n+ 4\n  five\n  six\n"},
		{"a new file", "workspace__write_file", `{"path":"b.txt","content":"x\ny"}`, "path: b.txt\n+ x\n+ y\n"},
		{"a file that stays as it is", "write_file", `{"path":"c.txt","content":""}`, "path: c.txt\n(no changes)\n"},
		{"an edit", "edit_file", `{"path":"a.txt","old":"two\n","new":"2\n","all":true}`, "path: a.txt\nall: true\n- two\n+ 2\n"},
		{"no object", "x", `[1]`, "[1]\n"},
		{"no JSON", "x", `{"a":`, "{\"a\":\n"},
		{"what drives a terminal", "x", `{"a\u001b[2J":"\u001b[31mred\u202e"}`, "a [2J: [31mred\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Arguments(tt.tool, json.RawMessage(tt.args), before); got != tt.want {
				t.Errorf("\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestBrief(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"tides"}`:              "tides",
		`{"path":"a.txt","n":3,"o":{}}`: "path: a.txt, n: 3, o: {0}",
		``:                              "",
		`nonsense`:                      "nonsense",
	} {
		if got := summarizeArguments(args); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
