package clientimport

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/atomicfile"
	"github.com/loadout-dev/loadout/internal/upstream"
)

const maxServersFile = 1 << 20

const serversHeader = "# Your MCP servers for Loadout. To set a value ${{secrets.NAME}}: loadout secret set NAME\n"

// serversFile holds the content of the user's servers file when it was read.
type serversFile struct {
	path   string
	data   []byte
	doc    yaml.Node
	byName map[string]*upstream.Config
}

func readServersFile(path string) (*serversFile, error) {
	s := &serversFile{path: path}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return s, s.parse(data)
}

func (s *serversFile) parse(data []byte) error {
	s.data, s.byName = data, map[string]*upstream.Config{}
	broken := func(why string) error {
		return errorf(ServersFile, "%s: %s", s.path, why)
	}
	if len(data) > maxServersFile {
		return broken("file is too large")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte(serversHeader + "mcpServers: {}\n")
	}
	if err := yaml.Load(data, &s.doc); err != nil {
		return broken("invalid YAML")
	}
	if m := s.serversNode(); m == nil {
		return broken("mcpServers is not a map of servers by name")
	}
	file, _ := upstream.Parse(data, upstream.ParseOptions{Name: s.path})
	for _, c := range file.Servers {
		s.byName[c.Name] = c
	}
	return nil
}

// serversNode returns the document's mcpServers map, or nil if there is none.
func (s *serversFile) serversNode() *yaml.Node {
	if len(s.doc.Content) == 0 || s.doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	top := s.doc.Content[0]
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != "mcpServers" {
			continue
		}
		v := top.Content[i+1]
		if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
			*v = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		if v.Kind == yaml.MappingNode {
			return v
		}
	}
	return nil
}

// add appends a server to the map.
func (s *serversFile) add(c *upstream.Config) {
	m := s.serversNode()
	m.Style = 0 // block style instead of one line
	m.Content = append(m.Content, textNode(c.Name), encodeServer(c))
	s.byName[c.Name] = c
}

// remove removes a server from the map.
func (s *serversFile) remove(name string) {
	m := s.serversNode()
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			m.Content = slices.Delete(m.Content, i, i+2)
			break
		}
	}
	delete(s.byName, name)
}

// encode returns the new content of the file. It returns an error if parsing
// that content would not yield the same servers.
func (s *serversFile) encode() ([]byte, error) {
	data, err := yaml.Dump(&s.doc, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, err
	}
	file, _ := upstream.Parse(data, upstream.ParseOptions{Name: s.path})
	back := map[string]string{}
	for _, c := range file.Servers {
		back[c.Name] = c.Digest()
	}
	for name, c := range s.byName {
		if back[name] != c.Digest() {
			return nil, fmt.Errorf("cannot encode server %q in %s without loss", name, s.path)
		}
	}
	return data, nil
}

// write replaces the file. It returns an error if the file has changed since it
// was read.
func (s *serversFile) write(data []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", s.path, err)
		}
	}()
	now, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, s.data) {
		return fmt.Errorf("%s changed since it was read", s.path)
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	target := s.path
	if real, err := filepath.EvalSymlinks(s.path); err == nil {
		target = real // preserve a symlink
	}
	return atomicfile.Write(target, data, 0o600)
}
