package rpcmessage_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// samples contain every kind of JSON value, some in strings longer than eight bytes.
var samples = []string{
	`{"a":1,"bc":[true,false,null],"d":{"e":"f"}}`,
	`["\"\\\/\b\f\n\r\t\u00e9\uABCD","a string without escapes, long enough",""]`,
	`[-0,0.5,12.25e+10,3E-7,-1e5,10]`,
	" [ { } , [ ] , { \"x\" : [ \"y\" ] } ]\r\n\t",
	`"0123456789\"0123456789"`,
}

// Skip accepts what package json accepts, whatever byte is replaced or cut off.
func TestSkipChecksSyntaxLikePackageJSON(t *testing.T) {
	check := func(text []byte) {
		t.Helper()
		end := rpcmessage.Skip(text, 0)
		valid := end >= 0 && len(bytes.Trim(text[end:], " \t\r\n")) == 0
		if valid != json.Valid(text) {
			t.Errorf("%q is valid: %t, package json says %t", text, valid, !valid)
		}
	}
	for _, s := range samples {
		for i := range len(s) + 1 {
			check([]byte(s[:i]))
			check([]byte(s[i:]))
			for c := range 256 {
				if i < len(s) {
					text := []byte(s)
					text[i] = byte(c)
					check(text)
				}
				check(slices.Concat([]byte(s[:i]), []byte{byte(c)}, []byte(s[i:])))
			}
		}
	}
	for _, depth := range []int{999, 1000} { // containers inside the outermost
		if end := rpcmessage.Skip([]byte(strings.Repeat("[", depth+1)+strings.Repeat("]", depth+1)), 0); end != 2*(depth+1) {
			t.Errorf("%d nested arrays: %d", depth, end)
		}
	}
	if end := rpcmessage.Skip([]byte(strings.Repeat("[", 1002)+strings.Repeat("]", 1002)), 0); end != -1 {
		t.Errorf("too many nested arrays: %d", end)
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string][]string{
		` [1, "a" ,[2],{"b":3}] `: {"1", `"a"`, "[2]", `{"b":3}`},
		`[]`:                      nil,
		`[ ]x`:                    nil,
	} {
		var got []string
		end := rpcmessage.Elements([]byte(text), 0, func(at int) int {
			end := rpcmessage.Skip([]byte(text), at)
			got = append(got, text[at:end])
			return end
		})
		if end != strings.LastIndexByte(text, ']')+1 || !slices.Equal(got, want) {
			t.Errorf("%q: %q, end %d", text, got, end)
		}
	}
	none := func(int) int { t.Error("called"); return -1 }
	for _, text := range []string{"", " ", "{}", `"[]"`} {
		if end := rpcmessage.Elements([]byte(text), 0, none); end != -1 {
			t.Errorf("%q: %d", text, end)
		}
	}
	if end := rpcmessage.Elements([]byte("[1]"), 0, func(int) int { return -1 }); end != -1 {
		t.Errorf("a refused element: %d", end)
	}
}

func TestMembers(t *testing.T) {
	visit := func(text string, names *[]string) int {
		return rpcmessage.Members([]byte(text), 0, func(name string, at int) int {
			*names = append(*names, name)
			return rpcmessage.Skip([]byte(text), at)
		})
	}
	for text, want := range map[string]string{
		` {"a": 1 , "" :2} `: "a,", `{}`: "", `{"~":{}}`: "~",
	} {
		var names []string
		if end := visit(text, &names); end != strings.LastIndexByte(text, '}')+1 || strings.Join(names, ",") != want {
			t.Errorf("%q: %q, end %d", text, names, end)
		}
	}
	// Names with escapes or other characters are left to package json.
	for _, text := range []string{"", " ", "[]", `{"a"`, `{"a" `, `{"a" 1}`, `{"a":`, `{"a":1`, `{a:1}`, `{"\u0061":1}`, `{"é":1}`, "{\"\x7f\":1}", "{\"\x1f\":1}"} {
		var names []string
		if end := visit(text, &names); end != -1 {
			t.Errorf("%q: %d", text, end)
		}
	}
}
