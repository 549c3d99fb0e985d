package hub_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
)

// A change based on an outdated version is refused and names the author of the newer
// one. A change without a base version overwrites.
func TestLostUpdates(t *testing.T) {
	onEach(t, func(t *testing.T, o hub.Options) {
		_, _, ada := rootAndAda(t, o)
		for kind, spec := range map[string][3]string{
			"Ghost":     {`{"systemPrompt":"1"}`, `{"systemPrompt":"2"}`, `{"systemPrompt":"3"}`},
			"Bot":       {`{"ghostRef":{"name":"g"}}`, `{"ghostRef":{"name":"g"},"skills":[]}`, `{"ghostRef":{"name":"g"},"skills":["a"]}`},
			"Team":      {`{"members":[{"botRef":{"name":"b"},"role":"1"}]}`, `{"members":[{"botRef":{"name":"b"},"role":"2"}]}`, `{"members":[{"botRef":{"name":"b"},"role":"3"}]}`},
			"Model":     {`{"vendor":"demo"}`, `{"vendor":"demo","model":"2"}`, `{"vendor":"demo","model":"3"}`},
			"MCPServer": {`{"url":"https://one.example.com"}`, `{"url":"https://two.example.com"}`, `{"url":"https://three.example.com"}`},
		} {
			ada.apply(t, "", "kind: Ghost\nmetadata: {name: g}\n---\nkind: Bot\nmetadata: {name: b}\nspec: {ghostRef: g}\n").want(t, 200)
			path := "/api/v1/kinds/" + kind + "/default/x"
			put := func(made, spec, query string) reply {
				return ada.with("If-Match", made).send(t, "PUT", path+query, fmt.Sprintf(`{"kind":%q,"metadata":{"name":"x"},"spec":%s}`, kind, spec))
			}
			put("", spec[0], "").want(t, 200)
			first := ada.send(t, "GET", path, nil).want(t, 200).header.Get("ETag")
			put(first, spec[1], "").want(t, 200)
			for _, query := range []string{"", "?dry=true"} {
				got := put(first, spec[2], query)
				if query == "" {
					got.wantProblem(t, 412, "stale")
				}
				for _, say := range []string{"ada", "changed the " + kind, `"generation":2`, `"name":"ada"`} {
					if !strings.Contains(strings.ReplaceAll(got.body, " ", ""), strings.ReplaceAll(say, " ", "")) {
						t.Errorf("%s%s: it does not contain %s: %s", kind, query, say, got.body)
					}
				}
			}
			put(first, spec[1], "").want(t, 200) // it is so already
			now := ada.send(t, "GET", path, nil).want(t, 200)
			if now.header.Get("ETag") != `"2"` {
				t.Errorf("%s: the ETag is %s of %s", kind, now.header.Get("ETag"), now.body)
			}
			named := fmt.Sprintf("kind: %s\nmetadata: {name: x, generation: %%d}\nspec: %s\n", kind, spec[2])
			ada.apply(t, "", fmt.Sprintf(named, 1)).wantProblem(t, 412, "stale")
			ada.apply(t, "", fmt.Sprintf(named, 2)).want(t, 200)
			put("", spec[0], "").want(t, 200)
			put(`"4"`, spec[1], "").want(t, 200)
			ada.send(t, "DELETE", path, nil).want(t, 204)
			put(`"5"`, spec[2], "").wantProblem(t, 412, "stale")
			for _, bad := range []string{"x", "5", `"0"`, "*", `W/"5"`} {
				put(bad, spec[2], "").wantProblem(t, 422, "invalid")
			}
			ada.apply(t, "", fmt.Sprintf("kind: %s\nmetadata: {name: x, generation: many}\nspec: %s\n", kind, spec[2])).wantProblem(t, 422, "refused")
		}
	})
}

// Of many who change the same at once, one does.
func TestConcurrentChangesKeepOne(t *testing.T) {
	onEach(t, func(t *testing.T, o hub.Options) {
		n, _, ada := rootAndAda(t, o)
		ada.apply(t, "", "kind: Ghost\nmetadata: {name: x}\nspec: {systemPrompt: first}\n").want(t, 200)
		var changing sync.WaitGroup
		answers := make([]reply, 10)
		for i := range answers {
			changing.Go(func() {
				body := fmt.Sprintf(`{"kind":"Ghost","metadata":{"name":"x"},"spec":{"systemPrompt":"%d"}}`, i)
				answers[i], _ = n.send(ada.with("If-Match", `"1"`), "PUT", "/api/v1/kinds/Ghost/default/x", body)
			})
		}
		changing.Wait()
		kept := 0
		for _, r := range answers {
			if r.status == 200 {
				kept++
				continue
			}
			r.wantProblem(t, 412, "stale")
		}
		if kept != 1 {
			t.Errorf("%d are stored", kept)
		}
	})
}
