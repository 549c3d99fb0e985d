package signature

import (
	"errors"
	"io"
	"io/fs"

	"github.com/loadout-dev/loadout/skill"
)

// ReadFile returns the content of the [FileName] of a skill and the public key
// that it names, which is not verified. It returns [ErrUnsigned] if there is no
// such file.
func ReadFile(files fs.FS) (sig []byte, key string, err error) {
	f, err := files.Open(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrUnsigned
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1)) // Parse refuses one byte over the limit
	if err != nil {
		return nil, "", err
	}
	s, err := Parse(b)
	if err != nil {
		return nil, "", err
	}
	return b, s.Key, nil
}

// VerifyBundle checks like [Verify] that the files of a skill are signed with a
// public key. It returns the name of the skill and the digest of its files.
func VerifyBundle(b *skill.Bundle, public string) (name, digest string, err error) {
	m, _, err := skill.ReadManifest(b)
	if err != nil {
		return "", "", err
	}
	parsed, _, err := skill.Parse(b, b.Folder)
	if err != nil {
		return "", "", err
	}
	sig, _, err := ReadFile(b)
	if err == nil {
		err = Verify(m, parsed.Name, sig, public)
	}
	return parsed.Name, m.Digest(), err
}
