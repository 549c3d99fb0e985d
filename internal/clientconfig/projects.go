package clientconfig

import (
	"fmt"

	"github.com/tailscale/hujson"
)

// ProjectEntry identifies a server for one project in the user's own file.
// Claude Code stores such servers under projects.PROJECT.mcpServers.
type ProjectEntry struct {
	Project string `json:"project"` // directory of the project as written in the file
	Name    string `json:"name"`
}

// projectsKey is the key of the projects in Claude Code's configuration file.
const projectsKey = "projects"

// Projects returns the servers of each project, by project directory and name.
// It returns nil if the client's file has no projects.
func (s *Servers) Projects() map[string]map[string]any { return s.projects }

// decodeProjects returns the servers of each project in a decoded file.
func decodeProjects(t Target, all map[string]any) map[string]map[string]any {
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

// importAllEntries is like importEntries but also removes project entries.
func importAllEntries(c Client, doc document, src []byte, names []string, local []ProjectEntry, e Entry) (document, []byte, error) {
	var err error
	for _, l := range local {
		if doc, src, err = replaceProjectEntry(c, doc, src, l, nil); err != nil {
			return nil, nil, err
		}
	}
	return importEntries(c, doc, src, names, e)
}

// replaceProjectEntry is like replaceEntry for a project entry.
func replaceProjectEntry(c Client, doc document, src []byte, l ProjectEntry, o object) (document, []byte, error) {
	in, err := projectDocument(doc, c.Key, l.Project)
	if err != nil {
		return nil, nil, err
	}
	if in == nil {
		return nil, nil, &refusal{-1, fmt.Sprintf("project %s not found", sanitizeLine(l.Project)), fixByHand}
	}
	var e edit
	if o == nil {
		if i, err := in.findEntry(l.Name); err != nil || i < 0 {
			return doc, src, err
		}
		e, err = in.removeEntry(l.Name, false)
	} else {
		e, err = in.setEntry(l.Name, o)
	}
	if err != nil {
		return nil, nil, err
	}
	after := e.apply(src)
	left, err := verifyProject(c, doc, after, l, o)
	return left, after, err
}

// projectDocument returns a project's part of a file as a document, or nil if
// it does not exist.
func projectDocument(doc document, key, project string) (*jsonDoc, error) {
	d, ok := doc.(*jsonDoc)
	if !ok || d.top == nil {
		return nil, nil
	}
	in := &jsonDoc{src: d.src, key: key, root: d.root, top: d.top, servers: -1}
	for _, name := range []string{projectsKey, project} {
		i, err := findMember(in.top, name)
		if err != nil || i < 0 {
			return nil, err
		}
		in.root = in.top.Members[i].Value
		if in.top, ok = in.root.Value.(*hujson.Object); !ok {
			return nil, nil
		}
	}
	var err error
	if in.servers, err = findMember(in.top, key); err != nil || in.servers < 0 {
		return in, err
	}
	value := in.top.Members[in.servers].Value
	if in.entries, ok = value.Value.(*hujson.Object); !ok {
		return nil, &refusal{value.StartOffset, `"` + key + `" is not an object`, "replace it with {} or delete it"}
	}
	return in, nil
}

// verifyProject is like verify for a project entry.
func verifyProject(c Client, before document, after []byte, l ProjectEntry, o object) (document, error) {
	fault := &refusal{-1, "the entry cannot be edited without changing other parts of the file", fixByHand}
	doc, err := parse(c, after)
	if err != nil {
		return nil, fault
	}
	old, now := before.decoded(), doc.decoded()
	was, is := projectSettings(old, l.Project), projectSettings(now, l.Project)
	if was == nil || is == nil {
		return nil, fault
	}
	servers, _ := is[c.Key].(map[string]any)
	if v, there := servers[l.Name]; there != (o != nil) || there && !equalValues(v, o.decoded()) {
		return nil, fault
	}
	dropEntry(was, c.Key, l.Name)
	dropEntry(is, c.Key, l.Name)
	if !equalValues(old, now) {
		return nil, fault
	}
	return doc, nil
}

// projectSettings returns a project's settings in a decoded file, or nil.
func projectSettings(all map[string]any, project string) map[string]any {
	dirs, _ := all[projectsKey].(map[string]any)
	settings, _ := dirs[project].(map[string]any)
	return settings
}

// restoreProjectEntries restores project entries from old. It returns notes
// about those that cannot be restored.
func restoreProjectEntries(c Client, old, doc document, src []byte, local []ProjectEntry) (document, []byte, []string, error) {
	var notes []string
	for _, l := range local {
		from, _ := projectSettings(old.decoded(), l.Project)[c.Key].(map[string]any)
		m, ok := from[l.Name].(map[string]any)
		if !ok {
			continue
		}
		settings := projectSettings(doc.decoded(), l.Project)
		if settings == nil {
			notes = append(notes, fmt.Sprintf("project %s is no longer in the file; its entry %q is not restored", sanitizeLine(l.Project), l.Name))
			continue
		}
		have, _ := settings[c.Key].(map[string]any)
		if now, there := have[l.Name]; there {
			if !equalValues(now, m) {
				notes = append(notes, fmt.Sprintf("entry %q of project %s was changed since and is not restored", l.Name, sanitizeLine(l.Project)))
			}
			continue
		}
		var err error
		if doc, src, err = replaceProjectEntry(c, doc, src, l, newObject(m)); err != nil {
			return nil, nil, nil, err
		}
	}
	return doc, src, notes, nil
}
