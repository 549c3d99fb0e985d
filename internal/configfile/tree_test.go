package configfile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/configfile"
)

// show writes a tree on one line, each value with its place.
func show(n *configfile.Node) string {
	at := fmt.Sprintf("@%d:%d", n.Line, n.Column)
	var parts []string
	switch n.Kind {
	case configfile.Map:
		for _, f := range n.Fields {
			parts = append(parts, fmt.Sprintf("%s@%d:%d=%s", f.Key, f.Line, f.Column, show(f.Value)))
		}
		return "{" + strings.Join(parts, " ") + "}" + at
	case configfile.List:
		for _, i := range n.Items {
			parts = append(parts, show(i))
		}
		return "[" + strings.Join(parts, " ") + "]" + at
	}
	return string(n.Kind[:1]) + ":" + n.Text + at
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      []string
	}{
		{"a.json", "", nil},
		{"a.json", "\xef\xbb\xbf{// c\n \"é\\u00e9\": [1.50, true, null,], /* [[ */ \"b\": \"x\\\"[\"}", []string{"{éé@2:2=[n:1.50@2:14 b:true@2:20 n:@2:26]@2:13 b@2:43=t:x\"[@2:48}@1:1"}},
		{"a.json", `{"a":1,"a":2}`, []string{"{a@1:2=n:1@1:6 a@1:8=n:2@1:12}@1:1"}},
		{"a.yaml", "# nothing\n", nil},
		{"a.yml", "a: 1.10\n---\n---\nü: {b: yes, 'c': ~}\n", []string{"{a@1:1=n:1.10@1:4}@1:1", "{ü@4:1={b@4:5=t:yes@4:8 c@4:13=n:@4:18}@4:4}@4:1"}},
		{"a.yaml", "base: &b {x: 1, y: 2}\nc:\n  <<: *b\n  x: 3\n", []string{"{base@1:1={x@1:11=n:1@1:14 y@1:17=n:2@1:20}@1:7 c@2:1={x@4:3=n:3@4:6 y@1:17=n:2@1:20}@3:3}@1:1"}},
		{"a.toml", "# c\nmodel = \"x # y\"\n[mcp_servers.\"a b\"]\nargs = [\n  \"[\", # ]\n  'q']\nenv = { A = \"1\" }\n  [mcp_servers.c]\n  url = '''x\n'''\n  z = 2.5\n",
			[]string{"{model@2:1=t:x # y@2:1 mcp_servers@3:1={a b@3:1={args@4:1=[t:[@4:1 t:q@4:1]@4:1 env@7:1={A@7:1=t:1@7:1}@7:1}@3:1 c@8:3={url@9:3=t:x\n@9:3 z@11:3=n:2.5@11:3}@8:3}@3:1}@1:1"}},
		{"a.toml", "[[a]]\nb=1\n[[a]]\nb=1979-05-27T07:32:00Z\n", []string{"{a@1:1=[{b@2:1=n:1@2:1}@1:1 {b@2:1=t:1979-05-27T07:32:00Z@2:1}@1:1]@1:1}@1:1"}},
		{"connections", "  // c\n {}", []string{"{}@2:2"}},
		{"connections", "a: b", []string{"{a@1:1=t:b@1:4}@1:1"}},
	} {
		docs, err := configfile.Parse([]byte(tt.src), configfile.FormatOf(tt.name, []byte(tt.src)))
		if err != nil {
			t.Errorf("%q: %v", tt.src, err)
			continue
		}
		var got []string
		for _, d := range docs {
			got = append(got, show(d))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.src, diff)
		}
	}
}

func TestErrorsHavePositionsAndQuoteNoValues(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"a.json", "{\n \"é\": secret}", "2:7: not valid JSON"},
		{"a.json", "{\"a\": \"secret\n\"}", "1:7: not valid JSON"},
		{"a.json", "{\"a\": 1", "1:8: not valid JSON"},
		{"a.json", "{\"a\": 1secret}", "1:7: not valid JSON"},
		{"a.yaml", "a: b\nc: 'secret\n", "2:4: not valid YAML"},
		{"a.yaml", "a: [secret\n", "2:1: not valid YAML"},
		{"a.yaml", "[a]: b\n", "1:1: map key is not a scalar"},
		{"a.toml", "a = 1\nb = secret\n", "2:5: not valid TOML"},
		{"a.toml", "a = \"\\qsecret\"\n", "1:6: not valid TOML"},
		{"a.toml", "[a]\n[a]\n", "2:2: not valid TOML: key 'a' has already been defined"},
		{"a.json", "{\"a\": \n\"\xff\"}", "2:2: not valid UTF-8"},
	} {
		_, err := configfile.Parse([]byte(tt.src), configfile.FormatOf(tt.name, nil))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want %s", tt.src, err, tt.want)
		}
	}
}

func TestJSON(t *testing.T) {
	docs, _ := configfile.Parse([]byte("a: [1.50, 0x1f, +7, .5, yes, true, ~, \"q\\n\"]\nb: 1\nb: {c: 2}\n"), configfile.YAML)
	if got, want := string(docs[0].JSON()), `{"a":[1.50,31,7,".5","yes",true,null,"q\n"],"b":{"c":2}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What is made to cost much is refused, and costs little.
func TestLimits(t *testing.T) {
	many := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < configfile.MaxBytes/8; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		a := fmt.Sprintf("*a%d", i)
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Join([]string{a, a, a, a, a, a, a, a, a, a}, ", "))
	}
	for _, tt := range []struct {
		name, file, src string
	}{
		{"size", "a.json", strings.Repeat(" ", configfile.MaxBytes+1)},
		{"lists in JSON", "a.json", strings.Repeat("[", 1_000_000)},
		{"comments between", "a.json", strings.Repeat("[/*]*/", 100_000)},
		{"values in JSON", "a.json", "[0" + strings.Repeat(",0", 200_000) + "]"},
		{"lists in YAML", "a.yaml", strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000)},
		{"aliases", "a.yaml", laughs},
		{"alias in itself", "a.yaml", "a: &a [*a]\n"},
		{"lists in TOML", "a.toml", "a=" + strings.Repeat("[", 1_000_000)},
		{"tables in TOML", "a.toml", "a=" + strings.Repeat("{a=", 300_000)},
		{"tables in TOML behind quotes", "a.toml", "b='''\n{'''''\nc=\"}\\\"}\"\na=" + strings.Repeat("{a='}',b=", 300)},
		{"key of TOML", "a.toml", "a" + strings.Repeat(".a", 300_000) + "=1"},
		{"header of TOML", "a.toml", "[a" + strings.Repeat(" . 'a'", 100_000) + "]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := configfile.Parse([]byte(tt.src), configfile.FormatOf(tt.file, nil))
			if err == nil || !err.TooLarge {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, tt := range []struct{ name, src string }{
		{"long keys", many("a%d" + strings.Repeat(".a", 7) + "=1\n")},
		{"long headers", many("[b%d" + strings.Repeat(".a", 7) + "]\n")},
		{"deep tables", many("b%d=" + strings.Repeat("{a=", 7) + "1" + strings.Repeat("}", 7) + "\n")},
	} {
		t.Run("TOML "+tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			configfile.Parse([]byte(tt.src), configfile.TOML)
			runtime.ReadMemStats(&after)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 128 { // what grows with the square of the size takes gigabytes
				t.Errorf("%d MiB allocated for 128 KiB", mb)
			} else {
				t.Logf("%d MiB", mb)
			}
		})
	}
}

// FuzzParse checks that parsing terminates, respects its limits and is deterministic,
// and that positions lie in the file.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"{\"a\": [1, {\"b\": null}], // c\n}", "a: &a [x]\nb: *a\nc: {<<: {d: 1}}\n---\n'x'", "[a.\"b\"]\nc = {d = 1}\n[[e]]\n'f' = '''g'''",
	} {
		for i := range 3 {
			f.Add([]byte(s), i)
		}
	}
	formats := []configfile.Format{configfile.JSON, configfile.YAML, configfile.TOML}
	f.Fuzz(func(t *testing.T, src []byte, format int) {
		fm := formats[(format%3+3)%3]
		docs, err := configfile.Parse(src, fm)
		again, err2 := configfile.Parse(src, fm)
		if diff := cmp.Diff(docs, again) + cmp.Diff(err, err2); diff != "" {
			t.Fatalf("two answers for one file:\n%s", diff)
		}
		lines := strings.Count(string(src), "\n") + strings.Count(string(src), "\r") + strings.Count(string(src), "\u0085") + strings.Count(string(src), "\u2028") + strings.Count(string(src), "\u2029") + 2
		if err != nil && (err.Message == "" || err.Line < 0 || err.Line > lines) {
			t.Errorf("error %+v of %d lines", err, lines)
		}
		nodes := 0
		var walk func(n *configfile.Node, depth int)
		walk = func(n *configfile.Node, depth int) {
			if nodes++; nodes > 200_000 || depth > 70 {
				t.Fatal("unbounded")
			}
			if n.Line < 1 || n.Line > lines || n.Column < 1 {
				t.Fatalf("%s at %d:%d of %d lines", n.Kind, n.Line, n.Column, lines)
			}
			for _, i := range n.Items {
				walk(i, depth+1)
			}
			for _, fl := range n.Fields {
				walk(fl.Value, depth+1)
			}
		}
		for _, d := range docs {
			walk(d, 1)
			js := d.JSON()
			if back, err := configfile.Parse(js, configfile.JSON); len(js) < configfile.MaxBytes && (err != nil || string(back[0].JSON()) != string(js)) {
				t.Errorf("%s as JSON is not the same when read again: %v", js, err)
			}
		}
	})
}
