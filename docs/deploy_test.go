package docs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/config"
)

// Files below deploy use only existing variables, flags and addresses.
func TestDeployment(t *testing.T) {
	known := variables()
	flags := commands(t)["serve"]
	for _, file := range []string{"Containerfile", "compose.yaml", "kubernetes.yaml"} {
		data, err := os.ReadFile(filepath.Join("..", "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bLOADOUT_[A-Z_]+`).FindAllString(string(data), -1) {
			if !slices.Contains(known, name) {
				t.Errorf("%s: no variable %s", file, name)
			}
		}
		for _, args := range regexp.MustCompile(`(?m)^\s*(?:command|args): \[serve, (.*)\]$`).FindAllSubmatch(data, -1) {
			for _, arg := range strings.Split(string(args[1]), ", ") {
				if strings.HasPrefix(arg, "--") && !slices.Contains(flags, arg) {
					t.Errorf("%s: loadout serve has no flag %s", file, arg)
				}
			}
		}
	}
}

// variables returns the variables that the program reads for a hub.
func variables() []string {
	out := []string{"LOADOUT_HUB_KEY", "LOADOUT_DATABASE", "LOADOUT_REDIS", "LOADOUT_OIDC_SECRET"}
	for _, m := range regexp.MustCompile(`# Environment: (\w+)`).FindAllStringSubmatch(config.Example(), -1) {
		out = append(out, m[1])
	}
	return out
}

// documents reads the documents of a YAML file.
func documents(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	dec, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for {
		var doc map[string]any
		err := dec.Load(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, doc)
	}
}

// at is the value at a path of keys and numbers.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for i, key := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(x) {
				t.Fatalf("no %v", path[:i+1])
			}
			v = x[n]
		default:
			t.Fatalf("no %v", path[:i+1])
		}
	}
	return v
}

// What has to fit together in the Kubernetes example does.
func TestKubernetes(t *testing.T) {
	of := map[string]map[string]any{}
	for _, d := range documents(t, "kubernetes.yaml") {
		of[at(t, d, "kind").(string)] = d
	}
	pod := at(t, of["Deployment"], "spec", "template")
	label := at(t, pod, "metadata", "labels", "app")
	for what, other := range map[string]any{
		"Deployment":          at(t, of["Deployment"], "spec", "selector", "matchLabels", "app"),
		"Service":             at(t, of["Service"], "spec", "selector", "app"),
		"PodDisruptionBudget": at(t, of["PodDisruptionBudget"], "spec", "selector", "matchLabels", "app"),
	} {
		if other != label {
			t.Errorf("%s selects %v, and pods are %v", what, other, label)
		}
	}
	hub := at(t, pod, "spec", "containers", "0")
	for probe, path := range map[string]string{"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"} {
		if got := at(t, hub, probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks %v, want %s", probe, got, path)
		}
	}
	args := at(t, hub, "args").([]any)
	drain, err := time.ParseDuration(args[slices.Index(args, any("--drain"))+1].(string))
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(at(t, pod, "spec", "terminationGracePeriodSeconds").(int)) * time.Second; grace < 2*drain+5*time.Second {
		t.Errorf("pods are killed after %v, and may need twice %v to end", grace, drain)
	}
	if least, replicas := at(t, of["PodDisruptionBudget"], "spec", "minAvailable").(int), at(t, of["Deployment"], "spec", "replicas").(int); least >= replicas {
		t.Errorf("%d of %d pods must stay, so no node can be emptied", least, replicas)
	}
	for _, e := range at(t, hub, "env").([]any) {
		name := at(t, e, "name").(string)
		_, plain := e.(map[string]any)["value"]
		if secret := slices.Contains([]string{"LOADOUT_DATABASE", "LOADOUT_REDIS", "LOADOUT_HUB_KEY"}, name); secret == plain {
			t.Errorf("%s is a secret: %t, and stands in the file: %t", name, secret, plain)
		}
	}
}

// Both nodes of the Compose example are the same but for their own directories, trust
// the proxy, and are waited for.
func TestCompose(t *testing.T) {
	c := documents(t, "compose.yaml")[0]
	one, two := at(t, c, "services", "hub-1"), at(t, c, "services", "hub-2")
	if a, b := at(t, one, "volumes", "0"), at(t, two, "volumes", "0"); a == b {
		t.Errorf("both nodes have the directory %v", a)
	}
	for _, node := range []any{one, two} {
		if at(t, node, "environment", "LOADOUT_HUB_PROXIES") != at(t, c, "networks", "default", "ipam", "config", "0", "subnet") {
			t.Error("the network of the proxy is not trusted")
		}
		args := at(t, node, "command").([]any)
		drain, err := time.ParseDuration(args[slices.Index(args, any("--drain"))+1].(string))
		if err != nil {
			t.Fatal(err)
		}
		grace, err := time.ParseDuration(at(t, node, "stop_grace_period").(string))
		if err != nil || grace < 2*drain+5*time.Second {
			t.Errorf("a node is killed after %v, and may need twice %v to end", grace, drain)
		}
	}
	proxy := at(t, c, "services", "proxy", "command").([]any)
	for _, node := range []string{"hub-1:8484", "hub-2:8484"} {
		if !slices.Contains(proxy, any(node)) {
			t.Errorf("the proxy does not know %s", node)
		}
	}
}

// The container file builds the command, and does not run as root.
func TestContainerfile(t *testing.T) {
	data, err := os.ReadFile("../deploy/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^USER [1-9]\d*$`).Match(data) {
		t.Error("it runs as root")
	}
	if !regexp.MustCompile(`(?m)^RUN CGO_ENABLED=0 go build .* \./cmd/loadout$`).Match(data) {
		t.Error("the command is not built without a C compiler")
	}
}
