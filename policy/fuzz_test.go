package policy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/policy"
)

// idHere is replaced by the correct ID of a grant.
const idHere = "$ID"

// FuzzGrant checks that a grant means what another JSON reader finds in its file,
// without duplicate members.
func FuzzGrant(f *testing.F) {
	dir := f.TempDir()
	s := policy.NewFileStore(dir)
	for _, change := range []func(*policy.Grant){
		func(*policy.Grant) {},
		func(g *policy.Grant) { g.Scope, g.Session = policy.ForSession, "s1" },
		func(g *policy.Grant) {
			g.Permissions.Network, g.Permissions.Secrets = []string{"*.a.com:443", "b.com"}, []string{"A"}
		},
		func(g *policy.Grant) { g.Presence = "terminal /dev/pts/3" },
		func(g *policy.Grant) { g.Needs = []policy.Need{{Name: "csv", Digest: digestOf("c")}} },
	} {
		g := newGrant(digestOf("a"))
		change(&g)
		g, err := s.Put(f.Context(), g)
		if err != nil {
			f.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join(dir, g.ID+".json"))
		if err != nil {
			f.Fatal(err)
		}
		file = bytes.Replace(file, []byte(g.ID), []byte(idHere), 1)
		f.Add(file)
		f.Add(bytes.Replace(file, []byte(`"version": 1`), []byte(`"version": 1, "Subject": "sha256:b"`), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var loose policy.Grant
		if json.Unmarshal(data, &loose) == nil { // else nearly every change is refused for its id
			data = bytes.Replace(data, []byte(idHere), []byte(policy.GrantID(loose)), 1)
		}
		g, err := policy.ReadGrant(data)
		if err != nil {
			if !cmp.Equal(g, policy.Grant{}) {
				t.Errorf("with the error %v comes the grant %+v", err, g)
			}
			return
		}
		if err := g.Subject.Check(); err != nil {
			t.Error(err)
		}
		said := members(t, data)
		for key, want := range map[string]any{"subject": g.Subject, "principal": g.Principal, "scope": g.Scope, "by": g.By, "allows": g.Permissions} {
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if json.Unmarshal(text, &a) != nil || json.Unmarshal(said[key], &b) != nil || !cmp.Equal(a, b) {
				t.Errorf("the grant has the %s %s, the file returned %s", key, text, said[key])
			}
		}
		if presence := string(said["presence"]); (presence != "") != (g.Presence != "") {
			t.Errorf("the grant has the presence %q, the file says: %s", g.Presence, presence)
		}
		if _, limited := said["expires"]; limited == g.Expires.IsZero() {
			t.Errorf("the grant expires at %s, the file says: %s", g.Expires, said["expires"])
		}
	})
}

// members reads an object token by token and fails on duplicate members.
func members(t *testing.T, data []byte) map[string]json.RawMessage {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("the file begins with %v (%v)", tok, err)
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		if _, twice := out[key.(string)]; twice {
			t.Errorf("the file has %q twice", key)
		}
		out[key.(string)] = value
	}
	return out
}
