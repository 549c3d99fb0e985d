package clientconfig

import (
	"fmt"

	"github.com/tailscale/hujson"
)

// Local is a server that counts in one project only, which a client keeps in the
// person's own file all the same: Claude Code does, under
// projects.PROJECT.mcpServers.
type Local struct {
	Project string `json:"project"` // its directory, as the file has it
	Name    string `json:"name"`
}

// projectsKey is the member of Claude Code's file that holds projects.
const projectsKey = "projects"

// Projects are the servers by name of each project in a client's own file; nil
// for a client that keeps none there.
func (s *Servers) Projects() map[string]map[string]any { return s.projects }

// projectsOf finds them in a decoded file.
func projectsOf(t Target, all map[string]any) map[string]map[string]any {
	if !t.Client.hasProjects() {
		return nil
	}
	out := map[string]map[string]any{}
	dirs, _ := all[projectsKey].(map[string]any)
	for dir, v := range dirs {
		settings, _ := v.(map[string]any)
		servers, _ := settings[t.Client.Key].(map[string]any)
		out[dir] = servers
	}
	return out
}

func (c Client) hasProjects() bool { return c.Name == "claude-code" }

// adoptAll is adopt, with entries of projects that go as well.
func adoptAll(c Client, doc document, src []byte, names []string, local []Local, e Entry) (document, []byte, error) {
	var err error
	for _, l := range local {
		if doc, src, err = stepIn(c, doc, src, l, nil); err != nil {
			return nil, nil, err
		}
	}
	return adopt(c, doc, src, names, e)
}

// stepIn is step for an entry of a project.
func stepIn(c Client, doc document, src []byte, l Local, o object) (document, []byte, error) {
	in, err := projectIn(doc, c.Key, l.Project)
	if err != nil {
		return nil, nil, err
	}
	if in == nil {
		return nil, nil, &refusal{-1, fmt.Sprintf("the project %s is not there", printable(l.Project)), fixByHand}
	}
	var e edit
	if o == nil {
		if i, err := in.find(l.Name); err != nil || i < 0 {
			return doc, src, err
		}
		e, err = in.without(l.Name, false)
	} else {
		e, err = in.with(l.Name, o)
	}
	if err != nil {
		return nil, nil, err
	}
	after := e.apply(src)
	left, err := verifyIn(c, doc, after, l, o)
	return left, after, err
}

// projectIn is a project of a file, edited as a file of its own would be; nil
// where it is not there.
func projectIn(doc document, key, project string) (*jsonDoc, error) {
	d, ok := doc.(*jsonDoc)
	if !ok || d.top == nil {
		return nil, nil
	}
	in := &jsonDoc{src: d.src, key: key, root: d.root, top: d.top, servers: -1}
	for _, name := range []string{projectsKey, project} {
		i, err := member(in.top, name)
		if err != nil || i < 0 {
			return nil, err
		}
		in.root = in.top.Members[i].Value
		if in.top, ok = in.root.Value.(*hujson.Object); !ok {
			return nil, nil
		}
	}
	var err error
	if in.servers, err = member(in.top, key); err != nil || in.servers < 0 {
		return in, err
	}
	value := in.top.Members[in.servers].Value
	if in.entries, ok = value.Value.(*hujson.Object); !ok {
		return nil, &refusal{value.StartOffset, `"` + key + `" is not an object`, "make it {} or delete it"}
	}
	return in, nil
}

// verifyIn is verify for an entry of a project: the text before and the one after
// say the same but for that.
func verifyIn(c Client, before document, after []byte, l Local, o object) (document, error) {
	fault := &refusal{-1, "the entry cannot be edited in this file without touching something else", fixByHand}
	doc, err := parse(c, after)
	if err != nil {
		return nil, fault
	}
	old, now := before.decoded(), doc.decoded()
	was, is := settingsOf(old, l.Project), settingsOf(now, l.Project)
	if was == nil || is == nil {
		return nil, fault
	}
	servers, _ := is[c.Key].(map[string]any)
	if v, there := servers[l.Name]; there != (o != nil) || there && !equal(v, o.decoded()) {
		return nil, fault
	}
	drop(was, c.Key, l.Name)
	drop(is, c.Key, l.Name)
	if !equal(old, now) {
		return nil, fault
	}
	return doc, nil
}

// settingsOf is a project in a decoded file, nil where it is not there.
func settingsOf(all map[string]any, project string) map[string]any {
	dirs, _ := all[projectsKey].(map[string]any)
	settings, _ := dirs[project].(map[string]any)
	return settings
}

// giveBack puts entries of projects back as they are in old, and says which
// cannot go back.
func giveBack(c Client, old, doc document, src []byte, local []Local) (document, []byte, []string, error) {
	var notes []string
	for _, l := range local {
		from, _ := settingsOf(old.decoded(), l.Project)[c.Key].(map[string]any)
		m, ok := from[l.Name].(map[string]any)
		if !ok {
			continue
		}
		settings := settingsOf(doc.decoded(), l.Project)
		if settings == nil {
			notes = append(notes, fmt.Sprintf("the project %s is gone from the file, and the entry %q of it is not put back", printable(l.Project), l.Name))
			continue
		}
		have, _ := settings[c.Key].(map[string]any)
		if now, there := have[l.Name]; there {
			if !equal(now, m) {
				notes = append(notes, fmt.Sprintf("the entry %q of the project %s has been written anew since, and stays", l.Name, printable(l.Project)))
			}
			continue
		}
		var err error
		if doc, src, err = stepIn(c, doc, src, l, objectOf(m)); err != nil {
			return nil, nil, nil, err
		}
	}
	return doc, src, notes, nil
}
