package conversation

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
)

// Sizes lists the instruction sizes of 17 skills in tokens, distributed as in a real
// collection: median 1,972, mean 3,260, p90 7,171, total 55,435.
var Sizes = []int{420, 610, 780, 950, 1130, 1310, 1520, 1740, 1972, 2210, 2520, 2890, 3340, 3950, 4586, 7171, 18336}

const descriptionTokens = 60 // median of real descriptions

// Skill is a skill with generated text.
type Skill struct{ Name, Description, Instructions string }

// Corpus holds generated skills and the text of conversations. The text for a
// subject is always the same. A Corpus is not safe for concurrent use.
type Corpus struct {
	Skills []Skill

	count   Count
	runtime *loadout.Runtime
	base    string // start of the instructions, the same for every way
	texts   map[string]string
}

// NewCorpus generates one skill for each size, which is the number of tokens in its instructions.
// The caller must close the corpus.
func NewCorpus(ctx context.Context, sizes []int, count Count) (*Corpus, error) {
	c := &Corpus{count: count, texts: map[string]string{}}
	files := fstest.MapFS{}
	for i, size := range sizes {
		s := Skill{fmt.Sprintf("%s-%s", nouns[i%len(nouns)], verbs[i%len(verbs)]), c.text(fmt.Sprintf("description %d", i), descriptionTokens), c.text(fmt.Sprintf("instructions %d", i), size)}
		c.Skills = append(c.Skills, s)
		files[s.Name+"/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: " + s.Name + "\ndescription: " + s.Description + "\n---\n" + s.Instructions + "\n")}
	}
	var err error
	c.runtime, err = loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("corpus", catalog.User, files)}})
	if err != nil {
		return nil, err
	}
	if n := len(c.runtime.Catalog().Snapshot().ForModel()); n != len(sizes) {
		c.Close()
		return nil, fmt.Errorf("missing generated skills in catalog: got %d, want %d", n, len(sizes))
	}
	tool := lookTool(c)
	c.base = c.text("base", baseTokens-count(tool.Name+tool.Description+string(tool.InputSchema)))
	return c, nil
}

// Close closes the runtime that serves the skills.
func (c *Corpus) Close() error { return c.runtime.Close() }

// Tokens returns the number of tokens in all instructions.
func (c *Corpus) Tokens() int {
	n := 0
	for _, s := range c.Skills {
		n += c.count(s.Instructions)
	}
	return n
}

func (c *Corpus) instructions(skill string) string {
	for _, s := range c.Skills {
		if s.Name == skill {
			return s.Instructions
		}
	}
	return ""
}

// text returns text about a subject with about the given number of tokens. The
// length is off by less than one percent or one word.
func (c *Corpus) text(subject string, tokens int) string {
	key := fmt.Sprint(tokens, " ", subject)
	if text, ok := c.texts[key]; ok {
		return text
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	low, high := 0, 2*tokens+8 // number of words; a word has at least half a token
	generated := make([]string, high)
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	for i := range generated {
		generated[i] = vocabulary[r.IntN(len(vocabulary))]
	}
	for low+1 < high {
		middle := (low + high) / 2
		if c.count(sentences(generated[:middle])) <= tokens {
			low = middle
		} else {
			high = middle
		}
	}
	text := sentences(generated[:low])
	c.texts[key] = text
	return text
}

// sentences joins words into sentences of up to 14 words.
func sentences(words []string) string {
	var out []string
	for len(words) > 0 {
		n := min(14, len(words))
		out = append(out, strings.Join(words[:n], " ")+".")
		words = words[n:]
	}
	return strings.Join(out, " ")
}

var (
	nouns      = strings.Fields("invoice report schedule recipe contract survey ledger manual atlas diary budget poster archive quiz garden timetable glossary menu")
	verbs      = strings.Fields("review planner check maker reader editor sorter")
	vocabulary = strings.Fields(`the a of to in and is for with each when before after only never always first last check read write open close count compare
		sort keep drop list name date amount total column row table page file folder image chart label note rule step question answer person team order
		price tax month year week number text line word title header footer section paragraph example template default value field format version change
		result error warning reason source target group part whole small large empty missing double single common rare old new clear short long plain exact
		rough quick slow early late left right above below between without against during because although whether unless until again once twice together
		separately carefully briefly directly usually sometimes customer supplier contract delivery payment receipt balance interest account statement`)
)
