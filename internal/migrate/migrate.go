// Package migrate reads what the users of other agent systems have, and adds it
// to Loadout. [Read] finds it in the files of a system: a checkout, a directory
// of exports, or both. The result is a [Plan], which lists what is kept,
// changed and lost. Nothing is written until the plan is applied, and applying
// it again changes nothing.
//
// Skills in the format of SKILL.md are not part of a plan: package install
// installs them from the same files. Documents for a hub are only counted.
//
// All files are untrusted. Their number, sizes and depth are limited, and no
// code in them is executed. Values of secrets are never kept, only their names.
// The texts of the items in a [Change] are printable. Start reading at [Read].
package migrate

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/printable"
)

// System names a system to migrate from.
type System string

// Systems.
const (
	Wegent           System = "wegent"
	WeKnora          System = "weknora"
	BAAgent          System = "ba-agent"
	LocalLLMProvider System = "local-llm-provider"
	Loadout          System = "loadout" // another machine
)

// Systems returns all systems, in the order in which the documentation lists
// them.
func Systems() []System { return []System{Wegent, WeKnora, BAAgent, LocalLLMProvider, Loadout} }

// Title returns the name of the system as its authors spell it.
func (s System) Title() string {
	return cmp.Or(map[System]string{Wegent: "Wegent", WeKnora: "WeKnora", Loadout: "Loadout"}[s], string(s))
}

// Kind is the kind of data that an [Item] describes.
type Kind string

// Kinds of items.
const (
	Skill        Kind = "skill"
	Server       Kind = "server"
	Conversation Kind = "conversation"
	Resources    Kind = "resources" // a file with documents for a hub
	Document     Kind = "document"  // a document, on a hub
	File         Kind = "file"      // a file that was not read, or not completely
)

// Outcome is the result of migrating an [Item].
type Outcome string

// Outcomes.
const (
	Kept    Outcome = "kept"
	Changed Outcome = "changed"
	Lost    Outcome = "lost"
	ForHub  Outcome = "for a hub" // a hub keeps it; this machine does not
)

// Item is one line of a migration report.
type Item struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	From string `json:"from"` // path of the file or directory in the system
	// ID is the [PastConversation.ID] of a conversation, or "".
	ID      string  `json:"-"`
	Outcome Outcome `json:"outcome"`
	// New is set if applying the plan adds the item, or updates a skill.
	// Otherwise it is already there, or it is lost.
	New bool `json:"new"`
	// Does says which command a new server runs, or to which hosts it connects.
	Does string `json:"does,omitempty"`
	// Details says what changed, or why the item is lost.
	Details []string `json:"details,omitempty"`
}

// Plan holds what [Read] found in the files of a system.
type Plan struct {
	System System
	// Servers are the MCP servers that configuration files define, with the
	// paths of these files.
	Servers       []ServerDefinition
	Conversations []*PastConversation
	Drafts        []Draft        // skills in other formats
	Resources     []ResourceFile // files for a hub
	// Lost lists what cannot be migrated.
	Lost []Item

	unlisted int // number of further losses
}

// ServerDefinition is an MCP server with the path of the file that defines it.
type ServerDefinition struct {
	clientimport.Definition
	From string
	// InDocument is set if the server belongs to a document for a hub.
	InDocument bool
}

// Read finds what can be migrated in the files of a system. It returns an error
// only if ctx is done, the system is unknown or the top directory cannot be
// read. Files that cannot be read are listed in [Plan.Lost].
func Read(ctx context.Context, system System, files fs.FS) (*Plan, error) {
	return ReadUpTo(ctx, system, files, maxTotalBytes)
}

// ReadUpTo is like [Read], but with a limit on the total size of the files.
func ReadUpTo(ctx context.Context, system System, files fs.FS, maxBytes int64) (*Plan, error) {
	if !slices.Contains(Systems(), system) {
		return nil, fmt.Errorf("unknown system %q", string(system))
	}
	r := &reader{ctx: ctx, files: files, maxBytes: maxBytes, plan: &Plan{System: system}, exports: map[string]*exported{}, titles: map[string]string{}, servers: map[definitionKey]int{}}
	if err := r.walk(); err != nil {
		return nil, err
	}
	r.addExports()
	if len(r.memory.Messages) > 0 {
		r.addConversation(&r.memory)
	}
	if n := r.plan.unlisted; n > 0 {
		r.plan.Lost = append(r.plan.Lost, Item{Kind: File, Name: fmt.Sprintf("%d more", n), From: ".", Outcome: Lost, Details: []string{fmt.Sprintf("not listed, because over %d items are lost", maxLost)}})
	}
	return r.plan, nil
}

// addLost records an item that cannot be migrated.
func (p *Plan) addLost(kind Kind, name, from, format string, args ...any) {
	if len(p.Lost) == maxLost {
		p.unlisted++
		return
	}
	p.Lost = append(p.Lost, Item{Kind: kind, Name: name, From: from, Outcome: Lost, Details: []string{fmt.Sprintf(format, args...)}})
	p.Lost[len(p.Lost)-1].Clip()
}

// Clip makes the fields of an item, which come from other programs, printable and
// truncates them. Does is truncated where it is set.
func (i *Item) Clip() {
	i.Name, i.From = clip(i.Name), clip(i.From)
	for n := range i.Details {
		i.Details[n] = clip(i.Details[n])
	}
}

// clip returns s in printable form, truncated to 200 bytes.
func clip(s string) string { return printable.Text(s, 200) }

// pluralize returns n followed by noun, in the plural unless n is 1.
func pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
