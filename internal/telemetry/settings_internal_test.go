package telemetry

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// settingsFor returns the settings of an environment and their log. Names of vars lack
// the prefix OTEL_EXPORTER_OTLP_.
func settingsFor(vars map[string]string) (settings, string) {
	var log strings.Builder
	e := environment{func(name string) string { return vars[strings.TrimPrefix(name, "OTEL_EXPORTER_OTLP_")] }, slog.New(slog.NewTextHandler(&log, nil))}
	return e.readSettings(), log.String()
}

func TestEndpoint(t *testing.T) {
	for _, tt := range []struct {
		vars map[string]string
		want string
	}{
		{nil, "https://localhost:4318/v1/traces"},
		{map[string]string{"ENDPOINT": "http://h:1"}, "http://h:1/v1/traces"},
		{map[string]string{"ENDPOINT": " https://h/base/ "}, "https://h/base/v1/traces"},
		{map[string]string{"ENDPOINT": "http://h", "TRACES_ENDPOINT": "https://other"}, "https://other/"},
		{map[string]string{"ENDPOINT": "https://h", "TRACES_ENDPOINT": "http://other/exact/?q=1"}, "http://other/exact/"},
		{map[string]string{"ENDPOINT": "https://h", "INSECURE": "TRUE"}, "http://h/v1/traces"},
		{map[string]string{"ENDPOINT": "http://h", "INSECURE": "true", "TRACES_INSECURE": "false"}, "https://h/v1/traces"},
	} {
		s, log := settingsFor(tt.vars)
		if got := s.endpoint.String(); got != tt.want || log != "" {
			t.Errorf("with %v: %s, want %s; log %q", tt.vars, got, tt.want, log)
		}
	}
}

// Values that cannot be read are logged without secrets and change nothing else.
func TestUnreadableSettings(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	s, log := settingsFor(map[string]string{"ENDPOINT": "http://%zz", "TIMEOUT": "soon", "TRACES_HEADERS": "secret,Good=1,Bad=%zz", "CERTIFICATE": missing,
		"CLIENT_CERTIFICATE": missing, "CLIENT_KEY": missing})
	if s.endpoint.Host != "localhost:4318" || s.timeout != 10*time.Second || len(s.headers) != 1 || s.headers["Good"] != "1" || s.tls != nil {
		t.Errorf("settings are %+v", s)
	}
	for _, name := range []string{"OTLP_ENDPOINT", "OTLP_TIMEOUT", "OTLP_TRACES_HEADERS", "OTLP_CERTIFICATE", "OTLP_CLIENT_CERTIFICATE"} {
		if !strings.Contains(log, name+" ") {
			t.Errorf("no %s in the log %s", name, log)
		}
	}
	if strings.Contains(log, "secret") {
		t.Errorf("the log contains a header: %s", log)
	}
}

func TestTimeoutVariable(t *testing.T) {
	if s, _ := settingsFor(map[string]string{"TIMEOUT": "7000", "TRACES_TIMEOUT": "250"}); s.timeout != 250*time.Millisecond {
		t.Errorf("timeout is %s", s.timeout)
	}
}
