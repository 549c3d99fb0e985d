package configfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReadFile reads a regular file of up to limit bytes. It rejects pipes and
// devices, which could block or never end.
func ReadFile(file string, limit int64) ([]byte, error) {
	fi, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case fi.IsDir():
		return nil, errors.New("want a file, got a directory")
	case !fi.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case fi.Size() > limit:
		return nil, fmt.Errorf("file too large (limit %d bytes)", limit)
	}
	return os.ReadFile(file)
}

// ListFiles returns the configuration files in the directory path, or path
// itself if it is a file.
func ListFiles(path string) ([]string, error) {
	fi, err := os.Stat(path)
	if err != nil || !fi.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	var out []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".json", ".jsonc", ".json5", ".yaml", ".yml", ".toml":
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	return out, err
}
