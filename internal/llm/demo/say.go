package demo

import (
	"fmt"
	"strings"
)

// phrases holds the demo's phrases in one language.
type phrases struct {
	none, next                         string
	noWords, noTools                   string
	searched, found, listed, nothing   string
	loaded, instructions, scripts, how string
	tools                              string
	ran, called, looked, toolsFound    string
	failed, unanswered, notAgain       string
	noFit, empty                       string
}

var english = phrases{
	none:         "The built-in demo answers, by fixed rules.",
	next:         "For real answers, configure a model of Anthropic or OpenAI with a key, or a compatible server such as Ollama, which needs none.",
	noWords:      "There was nothing to go by.",
	noTools:      "I was given no tools to find skills with, so I did nothing.",
	searched:     "I searched the skills for “%s”.",
	found:        "It found: %s.",
	listed:       "I looked at which skills there are:",
	nothing:      "There are none.",
	loaded:       "I loaded the skill %s.",
	instructions: "A language model would now follow its instructions, which begin:",
	scripts:      "It has scripts: %s.",
	how:          "Say “run %s of %s with …”, and I run it.",
	tools:        "It has tools: %s. Name one with its arguments as key=value, and I call it.",
	ran:          "I ran %s of %s with %s. This came back:",
	called:       "I called the tool %s with %s. This came back:",
	looked:       "I read %s of %s:",
	toolsFound:   "I looked for tools, too, and found: %s. Name one with its arguments as key=value, and I call it.",
	failed:       "I called %s, and it was not done. The answer was:",
	unanswered:   "I called %s, and no answer came.",
	notAgain:     "I do not try it again by myself.",
	noFit:        "No skill fits that, and without a model I cannot do it myself. Ask “What can you do?” to see the skills.",
	empty:        "no arguments",
}

var chinesePhrases = phrases{
	none:         "由内置演示按固定规则回答。",
	next:         "要得到真正的回答，请配置带密钥的 Anthropic 或 OpenAI 模型，或任何兼容的服务器；本机的 Ollama 不需要密钥。",
	noWords:      "没有可以处理的内容。",
	noTools:      "我没有得到查找技能的工具，所以什么也没有做。",
	searched:     "我用“%s”搜索了技能。",
	found:        "找到：%s。",
	listed:       "我查看了有哪些技能：",
	nothing:      "一个也没有。",
	loaded:       "我加载了技能 %s。",
	instructions: "语言模型现在会按照它的说明去做，说明开头是：",
	scripts:      "它有脚本：%s。",
	how:          "请说“运行 %[2]s 的 %[1]s，参数 …”，我就运行它。",
	tools:        "它有工具：%s。请写出工具名和 key=value 形式的参数，我就调用它。",
	ran:          "我运行了 %[2]s 的 %[1]s，参数：%[3]s。结果是：",
	called:       "我调用了工具 %s，参数：%s。结果是：",
	looked:       "我读了 %[2]s 的 %[1]s：",
	toolsFound:   "我也查找了工具，找到：%s。请写出工具名和 key=value 形式的参数，我就调用它。",
	failed:       "我调用了 %s，但没有成功。回答是：",
	unanswered:   "我调用了 %s，但没有得到回答。",
	notAgain:     "我不会自己再试。",
	noFit:        "没有合适的技能，而没有模型我自己也做不了。请问“你能做什么？”来查看技能。",
	empty:        "无",
}

const (
	maxInstructions = 400  // maximum number of bytes of instructions in a response
	maxShown        = 4000 // maximum number of bytes of a result in a response
	maxListed       = 20
)

// finalAnswer returns the response that ends a turn. It describes the steps and
// their results and says that it comes from the demo model.
func (t *turn) finalAnswer(next string) string {
	l := &english
	if isChinese(t.words) {
		l = &chinesePhrases
	}
	if next == "" {
		next = l.next
	}
	return strings.Join(append(t.report(l), l.none+" "+next), "\n\n")
}

func (t *turn) report(l *phrases) []string {
	switch {
	case len(t.steps) == 0 && t.words == "":
		return []string{l.noWords}
	case len(t.steps) == 0 && len(t.listed) > 0 && t.asksForOverview():
		return []string{describeList(l, t.listed)}
	case len(t.steps) == 0 && !t.has[search] && !t.has[load]:
		return []string{l.noTools}
	case len(t.steps) == 0:
		return []string{l.noFit}
	}
	var out []string
	for _, s := range t.steps {
		out = append(out, t.describeStep(l, s)...)
	}
	last := t.steps[len(t.steps)-1]
	if !last.failed && last.answered && !t.hasMadeFinalCall() && t.findStep(load) == nil && !t.asksForOverview() {
		out = append(out, l.noFit)
	}
	return out
}

// describeStep describes a step and its result.
func (t *turn) describeStep(l *phrases, s *step) []string {
	switch {
	case !s.answered:
		return []string{fmt.Sprintf(l.unanswered, s.name), l.notAgain}
	case s.failed:
		return []string{fmt.Sprintf(l.failed, t.callSubject(s)), quote(s.result), l.notAgain}
	}
	switch s.name {
	case search:
		return t.describeSearch(l, s)
	case load:
		return t.describeLoad(l, s)
	case runScript:
		return []string{fmt.Sprintf(l.ran, s.text("script"), s.text("skill"), l.formatArgument(s.args["args"])), quote(s.result)}
	case callTool:
		return []string{fmt.Sprintf(l.called, s.text("name"), l.formatArgument(s.args["arguments"])), quote(s.result)}
	case readFile:
		return []string{fmt.Sprintf(l.looked, s.text("path"), s.text("skill")), quote(s.result)}
	case findTools:
		if names := toolNames(t.tools); len(names) > 0 && !t.hasMadeFinalCall() {
			return []string{fmt.Sprintf(l.toolsFound, list(names))}
		}
	}
	return nil
}

// callSubject returns the name of the skill or tool that a call refers to.
func (t *turn) callSubject(s *step) string {
	for _, arg := range []string{"script", "path", "name"} {
		if of := s.text(arg); of != "" {
			return s.name + " (" + of + ")"
		}
	}
	return s.name
}

func (t *turn) describeSearch(l *phrases, s *step) []string {
	hits := readHits(s.result)
	query := s.text("query")
	if query != "" {
		if t.findStep(load) == nil && !t.hasMadeFinalCall() {
			return nil // what it found does not fit
		}
		text := fmt.Sprintf(l.searched, query)
		if len(hits) > 0 {
			text += " " + fmt.Sprintf(l.found, list(hitNames(hits)))
		}
		return []string{text}
	}
	return []string{describeList(l, hits)}
}

func describeList(l *phrases, hits []hit) string {
	if len(hits) == 0 {
		return l.listed + " " + l.nothing
	}
	text := l.listed
	for _, h := range hits[:min(len(hits), maxListed)] {
		text += "\n- " + h.Name + ": " + truncate(h.Description, 200)
	}
	return text
}

func (t *turn) describeLoad(l *phrases, s *step) []string {
	out := []string{fmt.Sprintf(l.loaded, s.text("name"))}
	k := findOrAdd(t.skills, s.text("name"))
	if k == nil || t.hasMadeFinalCall() {
		return out
	}
	if body := strings.TrimSpace(k.instructions); body != "" {
		out = append(out, l.instructions, quote(truncate(body, maxInstructions)))
	}
	if len(k.scripts) > 0 {
		out = append(out, fmt.Sprintf(l.scripts, list(k.scripts))+" "+fmt.Sprintf(l.how, k.scripts[0], k.name))
	}
	if len(k.tools) > 0 {
		out = append(out, fmt.Sprintf(l.tools, list(toolNames(k.tools))))
	}
	return out
}

func hitNames(hits []hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Name)
	}
	return out
}

func toolNames(all []tool) []string {
	var out []string
	for _, t := range all {
		out = append(out, t.name)
	}
	return out
}

func list(names []string) string {
	more := ""
	if len(names) > maxListed {
		names, more = names[:maxListed], ", …"
	}
	return strings.Join(names, ", ") + more
}

// quote formats a result as a Markdown quotation, truncating a long result.
func quote(result string) string {
	text := strings.ToValidUTF8(outputText(result), "")
	if short := truncate(text, maxShown); short != text {
		text = short + " …"
	}
	if text == "" {
		text = "–"
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// formatArgument formats an argument as JSON.
func (l *phrases) formatArgument(v any) string {
	if text := asJSON(v); text != "null" && text != "{}" {
		return truncate(text, maxInstructions)
	}
	return l.empty
}
