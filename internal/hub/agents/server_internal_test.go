package agents

import (
	"encoding/json"
	"testing"
)

func TestParseConfig(t *testing.T) {
	for config, valid := range map[string]bool{
		`{"url": "https://a.example/mcp"}`: true, `{"command": "npx", "args": ["weather"]}`: true,
		`{"type": "pigeon", "url": "https://a.example/mcp"}`: false, `{}`: false, `[]`: false, `7`: false, `{`: false,
	} {
		s := &MCPServer{Config: json.RawMessage(config)}
		c, err := s.parseConfig("weather")
		if (err == nil) != valid || valid != (c != nil) || valid && c.Name != "weather" || err != nil && err.Error() == "" {
			t.Errorf("%s: %+v, %v", config, c, err)
		}
	}
}
