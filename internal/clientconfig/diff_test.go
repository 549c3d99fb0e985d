package clientconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

func diffOf(t *testing.T, name, text string, e clientconfig.Entry) string {
	t.Helper()
	target := at(t, name, []byte(text))
	ch, err := clientconfig.Plan(target, e)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(ch.Diff(), target.File, "FILE")
}

func TestDiff(t *testing.T) {
	short := clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}}
	for _, tt := range []struct{ name, client, text, want string }{
		{"context has no values", "vscode",
			"{\n  \"servers\": {\n    \"a\": {\n      \"env\": { \"T\": \"SECRET\", \"N\": 12345, \"on\": true }\n    } // SECRET\n  },\n  \"x\": [\n    \"SECRET\"\n  ],\n  \"y\": 1\n}\n",
			`--- FILE
+++ FILE
@@ -2,7 +2,12 @@
   "servers": {
     "a": {
       "env": { "T": "•••", "N": •••, "on": true }
-    } // •••
+    }, // •••
+    "loadout": {
+      "type": "stdio",
+      "command": "loadout",
+      "args": ["mcp"]
+    }
   },
   "x": [
     "•••"
`},
		{"no line end at the end", "codex", "a = \"SECRET\"", `--- FILE
+++ FILE
@@ -1,1 +1,5 @@
 a = "•••"
+
+[mcp_servers.loadout]
+command = "loadout"
+args = ["mcp"]
`},
		{"values of several lines", "codex", "a = '''\nSECRET\n'''\nb = [ # SECRET\n  1979-05-27,\n]\n", `--- FILE
+++ FILE
@@ -4,3 +4,7 @@
 b = [ # •••
   •••,
 ]
+
+[mcp_servers.loadout]
+command = "loadout"
+args = ["mcp"]
`},
		{"an entry that goes", "codex",
			"[mcp_servers.loadout]\ncommand = \"env\"\nargs = [\"mcp\", \"--skills\", \"/SECRET\", \"-p\", \"-pSECRET\", \"--token=SECRET\", \"loadout\"]\nenv = { T = \"SECRET\" }\ntimeout = 5\nurl = 'https://u:SECRET@host:1/SECRET?t=SECRET'\n",
			`--- FILE
+++ FILE
@@ -1,6 +1,3 @@
 [mcp_servers.loadout]
-command = "env"
-args = ["mcp", "--skills", "•••", "-p", "•••", "--token=•••", "loadout"]
-env = { ••• = "•••" }
-timeout = •••
-url = "https://host:1/•••"
+command = "loadout"
+args = ["mcp"]
`},
		{"an entry that goes, in JSON", "gemini",
			"{\n  \"mcpServers\": {\n    \"loadout\": {\n      \"command\": \"TOKEN=SECRET x\",\n      \"httpUrl\": \"SECRET\",\n      \"args\": [[\"--a\"], {\"args\": \"SECRET\"}, \"SECRET\"],\n      \"url\": {\"url\": \"SECRET\"}, /* SECRET\n      SECRET */\n      \"type\": [\"SECRET\"]\n    }\n  }\n}\n",
			`--- FILE
+++ FILE
@@ -1,12 +1,8 @@
 {
   "mcpServers": {
     "loadout": {
-      "command": "•••",
-      "httpUrl": "•••",
-      "args": [["--a"], {"args": "•••"}, "•••"],
-      "url": {"url": "•••"}, /* •••
-•••
-      "type": ["•••"]
+      "command": "loadout",
+      "args": ["mcp"]
     }
   }
 }
`},
		{"no terminal controls", "cursor", "{\n  \"a\u009b31m\u202e\": {},\n  \"\x7f\": 1\n}", `--- FILE
+++ FILE
@@ -1,4 +1,10 @@
 {
   "a?31m?": {},
-  "?": •••
+  "?": •••,
+  "mcpServers": {
+    "loadout": {
+      "command": "loadout",
+      "args": ["mcp"]
+    }
+  }
 }
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := diffOf(t, tt.client, tt.text, short)
			if strings.Contains(got, "SECRET") {
				t.Error("the diff shows a secret")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// For a file on one long line, the diff shows the surroundings of the change.
func TestDiffOneLine(t *testing.T) {
	text := `{"a":{` + strings.Repeat(`"key":"SECRET",`, 500) + `"z":1},"mcpServers":{"b":{}},"c":{` + strings.Repeat(`"key":"SECRET",`, 500) + `"z":1}}`
	got := diffOf(t, "cursor", text, clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}})
	want := `--- FILE
+++ FILE
@@ -1,1 +1,1 @@
-…,"z":•••},"mcpServers":{"b":{}},"c":{"key":"•••","key":"•••"…
+…,"z":•••},"mcpServers":{"b":{},"loadout":{"command":"loadout","args":["mcp"]}},"c":{"key":"•••","key":"•••"…
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The new entry is shown whole, however long.
func TestDiffShowsWholeEntry(t *testing.T) {
	e := clientconfig.Entry{Command: "loadout", Args: []string{strings.Repeat("x", 30_000) + "END"}}
	for _, text := range []string{"{}", "{\n}", `{"mcpServers":{"loadout":{}}}`} {
		if got := diffOf(t, "cursor", text, e); !strings.Contains(got, `xEND"`) {
			t.Errorf("%q: the end is cut off", text)
		}
	}
}
