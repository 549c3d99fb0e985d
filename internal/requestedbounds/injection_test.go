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

func TestParseInjections(t *testing.T) {
	injection := func(host string, port int, header, prefix string) []policy.Injection {
		return []policy.Injection{{Secret: "KEY", Host: host, Port: port, Header: header, Prefix: prefix}}
	}
	for _, tt := range []struct {
		entry   string
		want    []policy.Injection
		problem string // a part of it; "" if the entry is valid
	}{
		{`{"secret":"KEY","host":"api.example.com"}`, injection("api.example.com", 443, "Authorization", "Bearer "), ""},
		{`{"secret":"KEY","host":"api.example.com:8443","header":"X-Key"}`, injection("api.example.com", 8443, "X-Key", ""), ""},
		{`{"secret":"KEY","host":"[2001:db8::1]","header":"x-09AZaz"}`, injection("[2001:db8::1]", 443, "x-09AZaz", ""), ""},
		{`{"secret":"KEY","host":"a.example","header":"authorization","prefix":"Token "}`, injection("a.example", 443, "authorization", "Token "), ""},
		{`{"secret":"KEY","host":"a.example","prefix":""}`, injection("a.example", 443, "Authorization", ""), ""},
		{`{"secret":"KEY","host":"a.example","prefix":"` + strings.Repeat("~", 100) + `"}`, injection("a.example", 443, "Authorization", strings.Repeat("~", 100)), ""},
		{`{"secret":"KEY","host":"a.example","prefix":"` + strings.Repeat("~", 101) + `"}`, nil, "invalid prefix"},
		{`{"secret":"KEY","host":"a.example","prefix":"a\r\nb"}`, nil, "invalid prefix"},
		{`{"secret":"KEY","host":"a.example","header":""}`, nil, "invalid header name"},
		{`{"secret":"KEY","host":"a.example","header":"a:b"}`, nil, "invalid header name"},
		{`{"secret":"KEY","host":"*.example"}`, nil, "must not be a pattern"},
		{`{"secret":"KEY","host":"a/b"}`, nil, "host"},
		{`{"secret":"KEY"}`, nil, "host"},
		{`{"secret":"K Y","host":"a.example"}`, nil, "secret name"},
		{`{"secret":"KEY","host":"a.example","hosts":"b"}`, nil, `unknown field "hosts"`},
	} {
		frontmatter := json.RawMessage(fmt.Sprintf(`{"sandbox":{"inject":[%s]}}`, tt.entry))
		if diff := cmp.Diff(tt.want, requestedbounds.ParseInjections(frontmatter)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.entry, diff)
		}
		bounds, problems := requestedbounds.Parse(frontmatter)
		if tt.problem == "" {
			if len(problems) > 0 || len(bounds.Network) != 1 || len(bounds.Secrets) != 1 {
				t.Errorf("%s: bounds %+v, problems %v", tt.entry, bounds, problems)
			}
		} else if len(problems) != 1 || !strings.Contains(problems[0].String(), tt.problem) || len(bounds.Network)+len(bounds.Secrets) > 0 {
			t.Errorf("%s: bounds %+v, problems %v, want %q", tt.entry, bounds, problems, tt.problem)
		}
	}
	for _, text := range []string{"", "{}", `{"sandbox":{}}`, `{"sandbox":{"inject":{}}}`, `{"sandbox":{"inject":null}}`} {
		if got := requestedbounds.ParseInjections(json.RawMessage(text)); got != nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
