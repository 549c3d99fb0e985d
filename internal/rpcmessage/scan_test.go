package rpcmessage_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

var values = []string{
	`{}`, `[]`, `null`, `true`, `false`, `tru`, `0`, `-0`, `01`, `-`, `1.`, `1.5e+3`, `1e`, `.5`, `"a"`, `"a`, `"\u00zz"`, `"\u00e9\n\\"`, `"\x"`,
	"\"a\nb\"", "\"12345678\x1f\"", `"12345678\`, `"é\ud800"`, "\"\xff\"", `[1,]`, `[1 2]`, `[,]`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, ` { "a" : [ 1 , { } ] , "b" : "c" } `,
	`{"a":1} x`, `[`, `{`, ``, `"`, strings.Repeat("[", 900) + strings.Repeat("]", 900), `"` + strings.Repeat("ab\\\"", 99) + `"`,
}

// Skip accepts what package json accepts, and finds the same end.
func FuzzSkip(f *testing.F) {
	for _, v := range values {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "[")+strings.Count(text, "{") > 1000 { // deeper values are for the SDK to refuse
			return
		}
		end := rpcmessage.Skip([]byte(text), 0)
		got := end >= 0 && strings.Trim(text[end:], " \t\r\n") == ""
		if want := json.Valid([]byte(text)); got != want {
			t.Errorf("%q: valid %v, want %v", text, got, want)
		}
	})
}

// Large messages are read like small ones: the SDK reads the same, and what is not
// valid is refused.
func TestLargeMessagesAreReadLikeTheSDK(t *testing.T) {
	large := strings.Repeat(`ab\n`, 40_000)
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + large + `"}]}}`,
		` { "jsonrpc" : "2.0" , "id" : "x" , "method" : "m" , "params" : [ "` + large + `" ] } `,
		`{"jsonrpc":"2.0","id":1,"id":2,"result":"` + large + `"}`,
	} {
		got := rpcmessage.DecodePlain([]byte(text))
		if got == nil {
			t.Errorf("%.60s: not read", text)
		}
		same(t, text, got)
	}
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"result":"` + large + "\n" + `"}`,
		`{"jsonrpc":"2.0","id":1,"result":"` + large + `"}}`,
		`{"jsonrpc":"2.0","\u0069d":1,"result":"` + large + `"}`,
		`["` + large + `"]`,
	} {
		if got := rpcmessage.DecodePlain([]byte(text)); got != nil {
			t.Errorf("%.60s: read as %T", text, got)
		}
	}
}
