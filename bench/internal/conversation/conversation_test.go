package conversation

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/tokencount"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTestCorpus(t *testing.T, sizes []int) *Corpus {
	t.Helper()
	c, err := NewCorpus(t.Context(), sizes, tokencount.Estimate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func playBodies(t *testing.T, c *Corpus, w *Way, turns int, seed uint64) [][]byte {
	t.Helper()
	out, err := Play(t.Context(), c, w, turns, seed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustBill(t *testing.T, m *Meter, bodies [][]byte) Bill {
	t.Helper()
	b, err := m.Bill(bodies)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Over 10 turns, loading skills on demand costs at least 40 % less than sending all
// instructions first, and less than each way that rewrites earlier messages.
func TestToolResultsCostLess(t *testing.T) {
	c := newTestCorpus(t, Sizes)
	if n := c.Tokens(); n < 54_800 || n > 55_500 {
		t.Fatalf("instructions have %d tokens", n)
	}
	meter := NewMeter(tokencount.Estimate)
	cost := func(w *Way, seeds uint64) (mean float64) {
		for seed := range seeds {
			mean += mustBill(t, meter, playBodies(t, c, w, 10, seed)).Cost / float64(seeds)
		}
		t.Logf("%s: %.0fk, the mean of %d", w.Name, mean/1e3, seeds)
		return mean
	}
	static := cost(Ways[0], 1) // independent of the seed
	if ours := cost(Ours, 6); ours > 0.6*static {
		t.Errorf("tool results cost %.0f %% of the static way, want at most 60 %%", 100*ours/static)
	}
	ours := cost(Ours, 1)
	for _, w := range Ways {
		if rewrites(w) && cost(w, 1) <= ours {
			t.Errorf("%s costs no more than tool results", w.Name)
		}
	}
}

// rewrites reports whether a way changes earlier messages.
func rewrites(w *Way) bool {
	return strings.HasPrefix(w.Name, "system") || strings.Contains(w.Name, "removed")
}

// Each of our requests starts with the previous one, so that nothing is written to the cache
// twice. The test detects ways that rewrite earlier messages.
func TestRequestsExtendThePrevious(t *testing.T) {
	c := newTestCorpus(t, []int{300, 400, 500, 600, 700})
	for _, w := range Ways {
		t.Run(w.Name, func(t *testing.T) {
			all := playBodies(t, c, w, 9, 3)
			apart := 0
			var before []string
			for _, body := range all {
				blocks, err := promptBlocks(body)
				if err != nil {
					t.Fatal(err)
				}
				if len(blocks) < len(before) || !slices.Equal(blocks[:len(before)], before) {
					apart++
				}
				before = blocks
			}
			if (apart > 0) != rewrites(w) {
				t.Errorf("%d of %d requests do not start with the previous one", apart, len(all))
			}
			if b := mustBill(t, NewMeter(tokencount.Estimate), all); (b.Rewritten > 0) != rewrites(w) {
				t.Errorf("bill has %d rewritten tokens", b.Rewritten)
			}
		})
	}
}

// A turn has the expected number of requests, the last request has all instructions that it
// needs, and the same seed gives the same conversation.
func TestPlay(t *testing.T) {
	c := newTestCorpus(t, []int{300, 400, 500, 600, 700})
	for _, w := range Ways {
		t.Run(w.Name, func(t *testing.T) {
			all := playBodies(t, c, w, 1, 7)
			want := toolCalls + 1
			if !w.static {
				want += slots // each load is a request
			}
			if len(all) != want {
				t.Errorf("%d requests, want %d", len(all), want)
			}
			there := 0
			for _, s := range c.Skills {
				if slices.ContainsFunc(mustBlocks(t, all[len(all)-1]), func(b string) bool { return strings.Contains(b, s.Instructions) }) {
					there++
				}
			}
			if want := map[bool]int{true: len(c.Skills), false: slots}[w.static]; there != want {
				t.Errorf("last request has the instructions of %d skills, want %d", there, want)
			}
			if again := playBodies(t, c, w, 1, 7); !slices.EqualFunc(all, again, slices.Equal) {
				t.Error("same seed, different conversation")
			}
		})
	}
}

// The second request has the same tool, which is read from the cache, and another first
// message, so the rest is written.
func TestBill(t *testing.T) {
	words := func(text string) int { return len(text) }
	b := mustBill(t, NewMeter(words), [][]byte{
		[]byte(`{"tools":[{"name":"look","input_schema":{},"cache_control":{"type":"ephemeral"}}],"system":[],"messages":[{"role":"user","content":[{"text":"12345","type":"text"}]}]}`),
		[]byte(`{"tools":[{"name":"look","input_schema":{}}],"system":[],"messages":[{"role":"user","content":[{"text":"1234567","type":"text","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"tool_use","name":"look","input":{}}]}]}`),
	})
	want := Bill{Requests: 2, Tokens: 11 + 19, Cost: 1.25*11 + 0.1*6 + 1.25*13, Rewritten: 5}
	if b != want {
		t.Errorf("got %+v, want %+v", b, want)
	}
}

func mustBlocks(t *testing.T, body []byte) []string {
	t.Helper()
	out, err := promptBlocks(body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
