package openai_test

import (
	"net/http"
	"testing"

	"github.com/loadout-dev/loadout/internal/llm/llmtest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/openai"
)

func TestModel(t *testing.T) {
	for name, q := range map[string]*openai.Quirks{"plain": quirks("v", nil), "replaying": quirks("v", func(q *quirk) { q.Replay = true })} {
		t.Run(name, func(t *testing.T) {
			v := llmtest.OpenAI()
			v.NoThinking = !q.Replay
			v.Open = func(url string, client *http.Client) (llm.Model, error) {
				return openai.New("some-model", &openai.Options{Key: llmtest.Key, BaseURL: url + "/v1", HTTP: client, Quirks: q})
			}
			llmtest.Run(t, v)
		})
	}
}
