package main

import (
	"strings"
	"testing"
)

// B4, B6: a skill that is not for models is for the person, who types its name and
// arguments; then its script is run for the model, too.
func TestB6PersonInvokesWhatTheModelMayNot(t *testing.T) {
	p := newSomeone(t, needsSandbox(t), "openai", map[string]string{
		"skills/hush/SKILL.md": skillOfSecrets, "skills/hush/more.sh": "echo more secrets\n",
	}, "--skills", "skills")
	p.approve("hush")
	p.server.Then(speak("", calling("1", "run_skill_script", "skill", "hush", "script", "more.sh")), speak("I whisper."))
	c := openConsoleOf(t, p.exe, 80, []string{"HOME=" + p.home, "TERM=dumb"}, "chat", "--skills", p.path("skills"), "--model", "openai:small", "--base-url", p.server.URL+"/v1")
	c.await(t, "> ")
	c.types(t, "/hush the old pier\n")
	c.await(t, "I whisper.")
	c.types(t, "\x04")
	c.end(t, 0)
	if body := p.lastBody(); !strings.Contains(body, "Whisper about the old pier.") || !strings.Contains(body, "/hush the old pier") {
		t.Errorf("the model is sent %s", body)
	}
	p.tells("1", "more secrets")
	p.onlyGrows()
}
