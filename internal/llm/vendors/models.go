package vendors

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// Limits of a list of models.
const (
	maxModels    = 1000
	maxListBytes = 4 << 20
)

// listRequest returns the request for a list of models. base is the base URL of
// the server, or "" for the vendor's own.
type listRequest func(ctx context.Context, base, key string) (*http.Request, error)

func anthropicList(ctx context.Context, base, key string) (*http.Request, error) {
	if base == "" {
		base = "https://api.anthropic.com"
	}
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/models?limit=1000", nil)
	if err == nil {
		r.Header.Set("anthropic-version", "2023-06-01")
		if key != "" {
			r.Header.Set("x-api-key", key)
		}
	}
	return r, err
}

func openaiList(ctx context.Context, base, key string) (*http.Request, error) {
	if base == "" {
		base = "https://api.openai.com/v1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base, "/")+"/models", nil)
	if err == nil && key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r, err
}

// Models returns the names of up to 1,000 models that the server offers, sorted.
// The names are untrusted. It returns no names if the server cannot list its
// models, and an [*llm.StatusError] if it refuses the request. It does not follow
// redirects, because they could send the key to another server.
func (v Vendor) Models(ctx context.Context, o Options) ([]string, error) {
	if v.list == nil {
		return nil, nil
	}
	r, err := v.list(ctx, o.BaseURL, o.Key)
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if o.HTTP != nil {
		client.Transport = o.HTTP.Transport
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return nil, nil
	default:
		return nil, fmt.Errorf("list models: %w", &llm.StatusError{Vendor: v.Name, Code: res.StatusCode, Message: http.StatusText(res.StatusCode)})
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxListBytes)).Decode(&list); err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	var names []string
	for _, m := range list.Data[:min(len(list.Data), maxModels)] {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
