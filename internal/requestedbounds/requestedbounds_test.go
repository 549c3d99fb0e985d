package requestedbounds_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/requestedbounds"
	"github.com/loadout-dev/loadout/policy"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in       string
		want     policy.Bounds
		problems []string // where and a part of the message
	}{
		{in: ``},
		{in: `{"name":"pdf","metadata":{"author":"x"}}`},
		{in: `{"sandbox":null}`},
		{in: `{"sandbox":{"network":["API.example.com","*.example.org:443"],"secrets":["KEY"],"memory_mb":256,"seconds":"30","processes":4,"disk_mb":10,"min_tier":3,"workspace_write":true}}`,
			want: policy.Bounds{Network: []string{"*.example.org:443", "api.example.com"}, Secrets: []string{"KEY"}, MemoryMB: 256, Seconds: 30, Processes: 4, DiskMB: 10, MinTier: 3, WorkspaceWrite: true}},
		{in: `{"metadata":{"sandbox":{"network":"b.example, a.example\tc.example","secrets":"B A"}}}`,
			want: policy.Bounds{Network: []string{"a.example", "b.example", "c.example"}, Secrets: []string{"A", "B"}}},
		{in: `{"metadata":"text","sandbox":{"seconds":1}}`, want: policy.Bounds{Seconds: 1}},
		{in: `{"sandbox":{"seconds":1},"metadata":{"sandbox":{"seconds":2}}}`, problems: []string{"sandbox: set both at the top level and under metadata"}},
		{in: `{"sandbox":{"netwrok":["a.example"],"secrets":["A"]}}`, want: policy.Bounds{Secrets: []string{"A"}}, problems: []string{"sandbox.netwrok: unknown field"}},
		{in: `{"metadata":{"sandbox":{"Network":["a.example"]}}}`, problems: []string{"metadata.sandbox.Network: unknown field"}},
		{in: `{"sandbox":{"unsandboxed":true,"host_network":true}}`, problems: []string{"sandbox.host_network: unknown field", "sandbox.unsandboxed: unknown field"}},
		{in: `{"sandbox":{"network":["a.example","b/c"],"secrets":["A","B C","*"]}}`, want: policy.Bounds{Network: []string{"a.example"}, Secrets: []string{"A"}},
			problems: []string{`sandbox.network: invalid host pattern "b/c"`, `sandbox.secrets: invalid secret name "B C"`, `sandbox.secrets: invalid secret name "*"`}},
		{in: `{"sandbox":{"network":[1],"secrets":{"a":1},"seconds":0,"memory_mb":-1,"disk_mb":1.5,"processes":"x","min_tier":99,"workspace_write":"yes"}}`,
			problems: []string{"sandbox.disk_mb: ", "sandbox.memory_mb: ", "sandbox.min_tier: ", "sandbox.network: ", "sandbox.processes: ", "sandbox.seconds: ", "sandbox.secrets: ", "sandbox.workspace_write: "}},
		{in: `{"sandbox":{"seconds":99999999999999999999}}`, problems: []string{"sandbox.seconds: "}},
		{in: `{"sandbox":{"network":` + list(257) + `}}`, problems: []string{"sandbox.network: too many entries (257"}},
		{in: `{"sandbox":{"memory_mb":1048576,"seconds":86400,"processes":65536,"disk_mb":1048576,"min_tier":9}}`,
			want: policy.Bounds{MemoryMB: 1048576, Seconds: 86400, Processes: 65536, DiskMB: 1048576, MinTier: 9}},
		{in: `{"sandbox":{"memory_mb":1048577,"seconds":86401,"processes":65537,"disk_mb":1048577,"min_tier":10}}`,
			problems: []string{"sandbox.disk_mb: ", "sandbox.memory_mb: ", "sandbox.min_tier: ", "sandbox.processes: ", "sandbox.seconds: "}},
		{in: `{"sandbox":{"inject":"KEY"}}`, problems: []string{"sandbox.inject: not a list of at most 256 mappings"}},
		{in: `{"sandbox":{"inject":[{"secret":"KEY","host":"a.example","port":1}]}}`, problems: []string{"sandbox.inject: not a list of at most 256 mappings"}},
		{in: `{"sandbox":["network"]}`, problems: []string{"sandbox: not a mapping"}},
		{in: `{"sandbox":{"\u001b[2J":1}}`, problems: []string{`sandbox.\x1b[2J: unknown field`}},
		{in: `[]`, problems: []string{"frontmatter: not a mapping"}},
		{in: `{`, problems: []string{"frontmatter: not a mapping"}},
		{in: `{"a":"` + strings.Repeat("x", 1<<20-len(`{"a":""}`)) + `"}`},
		{in: `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, problems: []string{"frontmatter: too large"}},
	} {
		name := tt.in[:min(len(tt.in), 80)]
		got, problems := requestedbounds.Parse(json.RawMessage(tt.in))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(problems) != len(tt.problems) {
			t.Errorf("%s: problems %q, want %q", name, problems, tt.problems)
			continue
		}
		for i, p := range problems {
			if !strings.HasPrefix(p.String(), tt.problems[i]) {
				t.Errorf("%s: problem %q, want %q", name, p, tt.problems[i])
			}
		}
	}
}

func TestListLimit(t *testing.T) {
	for n, want := range map[int]int{1: 1, 256: 256, 257: 0} {
		bounds, problems := requestedbounds.Parse(json.RawMessage(`{"sandbox":{"network":` + list(n) + `}}`))
		if len(bounds.Network) != want || (len(problems) > 0) != (want == 0) {
			t.Errorf("%d hosts: %d accepted, problems %v", n, len(bounds.Network), problems)
		}
		entries := strings.Repeat(`,{"secret":"KEY","host":"a.example"}`, n)[1:]
		injected := requestedbounds.ParseInjections(json.RawMessage(`{"sandbox":{"inject":[` + entries + `]}}`))
		if len(injected) != want {
			t.Errorf("%d injections: %d accepted", n, len(injected))
		}
	}
}

func list(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("h%d.example", i))
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var ann = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}

// Requested bounds are in normal form and can be granted.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"sandbox":{"network":["A.com","*.b.com:443","[::1]:80","10.0.0.1"],"secrets":"A, B","memory_mb":"1","min_tier":2}}`))
	f.Add([]byte(`{"metadata":{"sandbox":{"network":"*","workspace_write":true,"x":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		requested, _ := requestedbounds.Parse(data)
		unbounded := policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}, WorkspaceWrite: true}
		if same := unbounded.Intersect(requested); !cmp.Equal(same, requested) {
			t.Errorf("requested %+v, which intersected with everything is %+v", requested, same)
		}
		g := policy.Grant{Principal: ann, Subject: policy.Digest("sha256:" + strings.Repeat("a", 64)), Name: "pdf", Permissions: requested.Permissions(), Scope: policy.Always, By: ann}
		stored, err := policy.NewMemoryStore().Put(t.Context(), g)
		if err != nil || !cmp.Equal(stored.Permissions, g.Permissions) {
			t.Errorf("requested %+v, granted %+v, %v", g.Permissions, stored.Permissions, err)
		}
	})
}
