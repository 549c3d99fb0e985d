package vendors

import (
	"slices"
	"strings"
)

// imageModels are parts of the names of models that read images. A part matches at
// the start of the name, or after a character that is neither a letter nor a digit.
var imageModels = []string{
	"claude-3", "claude-4", "claude-opus", "claude-sonnet", "claude-haiku", "claude-fable",
	"gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-4-turbo", "gpt-5", "gpt-6", "chatgpt-4o", "o4-mini",
	"gemini", "gemma-3", "gemma3", "gemma-4", "gemma4", "llama-4", "llama4", "llava", "pixtral", "mistral-small3", "mistral-small-3",
	"vl", "vision", "qwen2.5vl", "qwen3vl", "minicpm-v", "internvl", "moondream",
}

// textModels are names that start like those of imageModels, of models that do not
// read images.
var textModels = []string{
	"o1-mini", "o1-preview", "o3-mini", "gemma3:1b", "gemma-3-1b", "gemma3:270m", "gemma-3-270m", "gpt-4o-audio", "gpt-4-turbo-preview",
}

// firstNames are like imageModels, but match only at the start of the name or of its
// last path element: marco-o1 is another model than o1.
var firstNames = []string{"o1", "o3"}

// ReadsImages reports whether a model is known to read images. name is the name that
// the model reports; see [llm.Model].
func ReadsImages(name string) bool {
	_, name, _ = strings.Cut(strings.ToLower(name), ":")
	last := name[strings.LastIndexByte(name, '/')+1:]
	isFirst := slices.ContainsFunc(firstNames, func(p string) bool {
		return strings.HasPrefix(last, p) && (len(last) == len(p) || !isAlphanumeric(last[len(p)]))
	})
	return (isFirst || containsName(name, imageModels)) && !containsName(name, textModels)
}

// containsName reports whether a name contains one of the parts.
func containsName(name string, parts []string) bool {
	for _, part := range parts {
		for at := 0; ; {
			i := strings.Index(name[at:], part)
			if i < 0 {
				break
			}
			at += i
			if end := at + len(part); (at == 0 || !isAlphanumeric(name[at-1])) && (end == len(name) || !isLetter(name[end])) {
				return true
			}
			at++
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }
