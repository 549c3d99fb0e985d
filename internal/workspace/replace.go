package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/overlay"
	"github.com/loadout-dev/loadout/internal/steering"
)

// readFile reads a regular file of at most MaxFile bytes.
func (f *folder) readFile(name string) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if len(data) > MaxFile {
		return nil, fmt.Errorf("file too large (limit %d bytes)", MaxFile)
	}
	return data, err
}

// replaceFile replaces the content of a file with the result of change. If it
// is a steering file, which gives instructions to an agent or configures a
// program, the user must approve the change first. Otherwise, no other call to
// this server can change the file while change runs.
func (f *folder) replaceFile(ctx context.Context, name string, change func() ([]byte, error)) error {
	if f.opts.Own {
		if execution.IsProtected(name) {
			return errors.New("protected, because programs run commands from this file; only the user can change it")
		}
	} else if class, reader := overlay.Classify(f.root, filepath.ToSlash(name)); class == steering.Steering {
		return f.replaceSteering(ctx, name, reader, change)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := change()
	if err != nil {
		return err
	}
	return f.writeFile(name, data)
}

// replaceSteering shows the user the change to a steering file and writes the
// file if the user agrees. reader is the name of the program that the file
// controls.
func (f *folder) replaceSteering(ctx context.Context, name, reader string, change func() ([]byte, error)) error {
	if f.opts.Agree == nil {
		return fmt.Errorf("protected, because it controls %s and the user cannot be prompted; only the user can change it", reader)
	}
	op := "modify"
	before, err := f.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		op, err = "create", nil
	}
	if err != nil {
		return err
	}
	data, err := change()
	if err != nil {
		return err
	}
	held := execution.NewHeldChange(filepath.ToSlash(name), op, reader, before, data)
	switch agreed, err := f.opts.Agree(ctx, []execution.HeldChange{held}); {
	case err != nil:
		return fmt.Errorf("ask the user about a change to a file that controls %s: %w; only the user can change it", reader, err)
	case !agreed:
		return fmt.Errorf("the user declined this change to a file that controls %s; do not try it in another way", reader)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.readFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, before) {
		return errors.New("file changed while waiting for approval; read it again")
	}
	return f.writeFile(name, data)
}
