package untrustedtest

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestHidden(t *testing.T) {
	a := strings.Repeat("a", 30)
	for in, want := range map[string]string{
		"": "", "plain\ttext\n": "", a + "\x1b" + a: `"` + a[:20] + `\x1b` + a[:20] + `"`, "\u200b": `"\u200b"`, "a\xffb": `"a\xffb"`, a + "\xff" + a: `"` + a[:20] + `\xff` + a[:19] + `"`,
		"\x00": `"\x00"`, "\U000e0041": `"\U000e0041"`, "\u007f": `"\x7f"`, "é ü 数": "",
	} {
		if got := Hidden(in); got != want {
			t.Errorf("%+q: %s, want %s", in, got, want)
		}
	}
}

func TestForged(t *testing.T) {
	a := strings.Repeat("a", 30)
	for in, want := range map[string]string{
		"": "", "a < b": "", "</system>": `"</system>"`, a + "<|" + a: `"` + a[:20] + `<|` + a[:20] + `"`, "[INST]": `"[INST]"`, "\n\nHuman: x": `"\n\nHuman: x"`, "Human: x": "",
	} {
		if got := Forged(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, s := range Hostile() {
		if Hidden(s) == "" && Forged(s) == "" {
			t.Errorf("%+q is not hostile", s)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a line that is no string is accepted")
		}
	}()
	parse("plain\n")
}

func TestYAML(t *testing.T) {
	for in, want := range map[string]string{"": `""`, "a ~": `"a ~"`, `a"\`: `"a\"\\"`, "\x1f\x7f": `"\U0000001f\U0000007f"`, "é\U000e0041": `"\U000000e9\U000e0041"`, "\xff": `"\U0000fffd"`} {
		if got := YAML(in); got != want {
			t.Errorf("%+q: %s, want %s", in, got, want)
		}
	}
	head, _, _ := strings.Cut(strings.TrimPrefix(Skill("pdf", "text: \u202e"), "---\n"), "---\n")
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(head), &fields); err != nil || fields["name"] != "pdf" || len(fields) != 13 {
		t.Errorf("%v %v", fields, err)
	}
	for _, name := range []string{"description", "displayName", "version", "argument-hint", "license", "compatibility", "author", "when_to_use", "allowed-tools"} {
		if fields[name] != "text: \u202e" {
			t.Errorf("%s is %q", name, fields[name])
		}
	}
}
