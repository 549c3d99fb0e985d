package rpcmessage_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// texts lists valid and invalid messages; plain is set if Plain reads them.
var texts = []struct {
	text  string
	plain bool
}{
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"é":[1,null]}}}`, true},
	{` { "params" : [ 1 , 2 ] , "method" : "m" , "id" : "a b" , "jsonrpc" : "2.0" } `, true},
	{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, true},
	{`{"jsonrpc":"2.0","id":-7,"result":{}}`, true},
	{`{"jsonrpc":"2.0","id":0,"result":[]}`, true},
	{`{"jsonrpc":"2.0","id":1,"method":"","params":{}}`, true},
	{`{"jsonrpc":"2.0","id":1,"id":2,"method":"m","method":"n"}`, true},
	{`{"jsonrpc":"2.0","ID":1,"Method":"m","id":3,"result":1}`, true},
	{`{"jsonrpc":"2.0","id":1,"result":{},"params":{}}`, true},
	{`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, false},
	{`{"jsonrpc":"2.0","id":1,"method":null}`, false},
	{`{"jsonrpc":"2.0","id":1,"method":7}`, false},
	{`{"jsonrpc":"2.0","id":1,"method":"m\u00e9"}`, false},
	{`{"jsonrpc":"2.0","id":1,"method":"é"}`, false},
	{`{"jsonrpc":"2.0","id":null,"method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":1e3,"method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":"\n","method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":{},"method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":true,"method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":1,"result":null}`, false},
	{`{"jsonrpc":"2.0","id":1,"error":{"code":-3,"message":"x","data":[1]}}`, false},
	{`{"jsonrpc":"2.0","id":1,"result":1,"error":null}`, false},
	{`{"jsonrpc":"2.0","result":1}`, false},
	{`{"jsonrpc":"2.0","id":1}`, false},
	{`{"jsonrpc":"1.0","id":1,"method":"m"}`, false},
	{`{"id":1,"method":"m"}`, false},
	{`{"jsonrpc":"2.0","id":1,"method":"m"}x`, false},
	{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":}}`, false},
	{`[]`, false}, {`null`, false}, {`7`, false}, {``, false}, {`{`, false},
}

func TestPlainMessagesAreReadLikeTheSDK(t *testing.T) {
	for _, tt := range texts {
		got := rpcmessage.DecodePlain([]byte(tt.text))
		if (got != nil) != tt.plain {
			t.Errorf("%s: read as %#v, want plain %v", tt.text, got, tt.plain)
		}
		same(t, tt.text, got)
	}
}

func same(t *testing.T, text string, got jsonrpc.Message) {
	t.Helper()
	if got == nil {
		return
	}
	want, err := jsonrpc.DecodeMessage([]byte(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nread as %#v\nby the SDK %#v, %v", text, got, want, err)
	}
}

// What is read is written as the SDK writes it, on one line.
func TestLinesMatchTheSDK(t *testing.T) {
	for _, tt := range texts {
		msg, err := jsonrpc.DecodeMessage([]byte(tt.text))
		if err != nil {
			continue
		}
		line, err := rpcmessage.EncodeLine(msg)
		want, wantErr := jsonrpc.EncodeMessage(msg)
		if (err != nil) != (wantErr != nil) {
			t.Errorf("%s: %v, by the SDK %v", tt.text, err, wantErr)
		}
		if err == nil && !equalJSON(line, want) || strings.Count(string(line), "\n") > 1 {
			t.Errorf("%s\nwritten as %s\nby the SDK %s", tt.text, line, want)
		}
	}
}

func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func TestMultilineMessagesAreWrittenOnOneLine(t *testing.T) {
	id, err := jsonrpc.MakeID("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, msg := range []jsonrpc.Message{
		&jsonrpc.Request{ID: id, Method: "m", Params: json.RawMessage("{\n\"a\":1}")},
		&jsonrpc.Response{ID: id, Result: json.RawMessage("{\n\"a\":1}")},
	} {
		line, err := rpcmessage.EncodeLine(msg)
		if err != nil || strings.Count(string(line), "\n") != 1 || !json.Valid(line) {
			t.Errorf("%q, %v", line, err)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, tt := range texts {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := rpcmessage.DecodePlain([]byte(text))
		same(t, text, got)
		if got == nil {
			return
		}
		line, err := rpcmessage.EncodeLine(got)
		if err != nil {
			return
		}
		if want, err := jsonrpc.EncodeMessage(got); err == nil && !equalJSON(line, want) {
			t.Errorf("%s\nwritten as %s\nby the SDK %s", text, line, want)
		}
	})
}
