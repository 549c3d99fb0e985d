package signature

import (
	"errors"
	"io"
	"io/fs"

	"github.com/loadout-dev/loadout/skill"
)

// ReadFile returns the content of a skill's [FileName] and the public key in
// it. The signature is not verified. If there is no such file, the error is
// [ErrUnsigned].
func ReadFile(files fs.FS) (sig []byte, key string, err error) {
	f, err := files.Open(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrUnsigned
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1)) // Parse rejects a signature of one byte too many
	if err != nil {
		return nil, "", err
	}
	s, err := Parse(b)
	if err != nil {
		return nil, "", err
	}
	return b, s.Key, nil
}

// VerifyBundle verifies that the files of a skill are signed with a public key,
// like [Verify]. It returns the name of the skill and the digest of its files.
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
