package conversation

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func corpus(t *testing.T, sizes []int) *Corpus {
	t.Helper()
	c, err := NewCorpus(t.Context(), sizes, skill.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func bodies(t *testing.T, c *Corpus, w *Way, turns int, seed uint64) [][]byte {
	t.Helper()
	out, err := Play(t.Context(), c, w, turns, seed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func bill(t *testing.T, m *Meter, bodies [][]byte) Bill {
	t.Helper()
	b, err := m.Bill(bodies)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Loading skills when they are needed costs at least 40 % less over 10 turns than
// telling all of them first, and less than each way that changes what was sent.
func TestToolResultsAreCheap(t *testing.T) {
	c := corpus(t, Sizes)
	if n := c.Tokens(); n < 54_800 || n > 55_500 {
		t.Fatalf("the instructions have %d tokens", n)
	}
	meter := NewMeter(skill.Tokens)
	cost := func(w *Way, seeds uint64) (mean float64) {
		for seed := range seeds {
			mean += bill(t, meter, bodies(t, c, w, 10, seed)).Cost / float64(seeds)
		}
		t.Logf("%s: %.0fk, the mean of %d", w.Name, mean/1e3, seeds)
		return mean
	}
	static := cost(Ways[0], 1) // which skills are needed makes no difference to it
	if ours := cost(Ours, 6); ours > 0.6*static {
		t.Errorf("tool results cost %.0f %% of all instructions first, want at most 60 %%", 100*ours/static)
	}
	ours := cost(Ours, 1)
	for _, w := range Ways {
		if rewrites(w) && cost(w, 1) <= ours {
			t.Errorf("%s costs no more than tool results", w.Name)
		}
	}
}

// rewrites says that a way changes what was sent.
func rewrites(w *Way) bool {
	return strings.HasPrefix(w.Name, "system") || strings.Contains(w.Name, "taken out")
}

// Each request of ours begins with the one before, so that nothing is written to a
// cache twice; ways that change what was sent are seen to.
func TestPrefixes(t *testing.T) {
	c := corpus(t, []int{300, 400, 500, 600, 700})
	for _, w := range Ways {
		t.Run(w.Name, func(t *testing.T) {
			all := bodies(t, c, w, 9, 3)
			apart := 0
			var before []string
			for _, body := range all {
				blocks, err := prompt(body)
				if err != nil {
					t.Fatal(err)
				}
				if len(blocks) < len(before) || !slices.Equal(blocks[:len(before)], before) {
					apart++
				}
				before = blocks
			}
			if (apart > 0) != rewrites(w) {
				t.Errorf("%d of %d requests do not begin with the one before", apart, len(all))
			}
			if b := bill(t, NewMeter(skill.Tokens), all); (b.Rewritten > 0) != rewrites(w) {
				t.Errorf("the bill has %d tokens written again", b.Rewritten)
			}
		})
	}
}

// A turn has the calls that it should, each way has all instructions it needs in the
// last request, and the same seed needs the same skills.
func TestWhatIsSent(t *testing.T) {
	c := corpus(t, []int{300, 400, 500, 600, 700})
	for _, w := range Ways {
		t.Run(w.Name, func(t *testing.T) {
			all := bodies(t, c, w, 1, 7)
			want := toolCalls + 1
			if !w.static {
				want += slots // a load is a request
			}
			if len(all) != want {
				t.Errorf("%d requests, want %d", len(all), want)
			}
			there := 0
			for _, s := range c.Skills {
				if slices.ContainsFunc(blocks(t, all[len(all)-1]), func(b string) bool { return strings.Contains(b, s.Instructions) }) {
					there++
				}
			}
			if want := map[bool]int{true: len(c.Skills), false: slots}[w.static]; there != want {
				t.Errorf("the last request has the instructions of %d skills, want %d", there, want)
			}
			if again := bodies(t, c, w, 1, 7); !slices.EqualFunc(all, again, slices.Equal) {
				t.Error("the same seed is another conversation")
			}
		})
	}
}

// What a bill is made of, by hand: of the second request the tool is read, and the
// rest is written, as the first message is another.
func TestBill(t *testing.T) {
	words := func(text string) int { return len(text) }
	b := bill(t, NewMeter(words), [][]byte{
		[]byte(`{"tools":[{"name":"look","input_schema":{},"cache_control":{"type":"ephemeral"}}],"system":[],"messages":[{"role":"user","content":[{"text":"12345","type":"text"}]}]}`),
		[]byte(`{"tools":[{"name":"look","input_schema":{}}],"system":[],"messages":[{"role":"user","content":[{"text":"1234567","type":"text","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"tool_use","name":"look","input":{}}]}]}`),
	})
	want := Bill{Requests: 2, Tokens: 11 + 19, Cost: 1.25*11 + 0.1*6 + 1.25*13, Rewritten: 5}
	if b != want {
		t.Errorf("got %+v, want %+v", b, want)
	}
}

func blocks(t *testing.T, body []byte) []string {
	t.Helper()
	out, err := prompt(body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
