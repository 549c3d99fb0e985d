package signature

import (
	"errors"
	"io"
	"io/fs"

	"github.com/loadout-dev/loadout/skill"
)

// ReadFile returns the content of a skill's [FileName] and the public key in
// it. The signature is not verified. If the skill has no such file, the error
// is [ErrUnsigned].
func ReadFile(files fs.FS) (sig []byte, key string, err error) {
	f, err := files.Open(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrUnsigned
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1)) // one byte more, so that Parse rejects a longer signature
	if err != nil {
		return nil, "", err
	}
	s, err := Parse(b)
	if err != nil {
		return nil, "", err
	}
	return b, s.Key, nil
}

// VerifyBundle is like [Verify] for the files of a skill: they must be signed
// with the public key. It returns the skill's name and the digest of its files.
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
