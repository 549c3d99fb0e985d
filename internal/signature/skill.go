package signature

import (
	"errors"
	"io"
	"io/fs"

	"github.com/loadout-dev/loadout/skill"
)

// ReadFile returns the content of a skill's [FileName] and the parsed
// signature, which is not verified. If the skill has no such file, the error is
// [ErrUnsigned].
func ReadFile(files fs.FS) (sig []byte, s *Signature, err error) {
	f, err := files.Open(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrUnsigned
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1)) // one byte more, so that Parse rejects a longer signature
	if err != nil {
		return nil, nil, err
	}
	if s, err = Parse(b); err != nil {
		return nil, nil, err
	}
	return b, s, nil
}

// VerifyBundle is like [Verify] for the files of a skill: they must be signed
// with the public key. It returns the digest of the files and the signature,
// which contains the skill's name.
func VerifyBundle(b *skill.Bundle, public string) (digest string, s *Signature, err error) {
	m, _, err := skill.ReadManifest(b)
	if err != nil {
		return "", nil, err
	}
	parsed, _, err := skill.Parse(b, b.Folder)
	if err != nil {
		return "", nil, err
	}
	sig, s, err := ReadFile(b)
	if err == nil {
		err = Verify(m, parsed.Name, sig, public)
	}
	return m.Digest(), s, err
}
