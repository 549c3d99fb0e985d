package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// PendingRequest is a command that was refused because the user did not type
// it. It is pending until the user runs it.
type PendingRequest struct {
	Args   []string  `json:"args"`   // arguments of loadout
	Dir    string    `json:"dir"`    // working directory
	Reason string    `json:"reason"` // why it was refused
	Time   time.Time `json:"time"`
}

// Command returns the command as the user types it.
func (r *PendingRequest) Command() string { return formatCommand(r.Args) }

const (
	pendingVersion   = 1
	maxPending       = 100 // older requests are dropped
	maxPendingBytes  = 1 << 20
	maxPendingArgs   = 4096 // bytes in the arguments of a request
	pendingRetention = 7 * 24 * time.Hour
)

// pendingFile is the content of the file with pending requests.
type pendingFile struct {
	Version  int              `json:"version"`
	Requests []PendingRequest `json:"requests"` // oldest first
}

func (s *Setup) pendingFile() *privatefile.File {
	if path := s.pendingPath(); path != "" {
		return privatefile.New(path, maxPendingBytes)
	}
	return nil
}

// pendingPath returns the path of the file with pending requests, or "" if
// there is no state directory.
func (s *Setup) pendingPath() string {
	if d := s.StateDir(); d != "" {
		return filepath.Join(d, "pending.json")
	}
	return ""
}

// AddPending adds a request, or updates the one for the same command. It sets
// the time, and the directory if r has none. If the request cannot be stored,
// AddPending prints a note; the error about the refusal also contains the
// command.
func (s *Setup) AddPending(ctx context.Context, r PendingRequest) {
	file := s.pendingFile()
	if file == nil || len(formatCommand(r.Args)) > maxPendingArgs {
		return
	}
	if r.Dir == "" {
		r.Dir, _ = os.Getwd()
	}
	r.Time = time.Now().UTC().Round(time.Second)
	err := s.changePending(ctx, file, func(all []PendingRequest) []PendingRequest {
		all = slices.DeleteFunc(all, func(o PendingRequest) bool { return o.Dir == r.Dir && slices.Equal(o.Args, r.Args) })
		all = append(all, r)
		return all[max(0, len(all)-maxPending):]
	})
	if err != nil {
		s.Note("cannot list the request as pending: %v", err)
	}
}

// RemoveAnswered removes the pending requests for the command that the user ran
// last, if any. Call it after the command succeeded.
func (s *Setup) RemoveAnswered(ctx context.Context) {
	if len(s.answered) == 0 {
		return
	}
	done := withoutLimits(s.answered)
	same := func(o PendingRequest) bool { return slices.Equal(withoutLimits(o.Args), done) }
	all, err := s.PendingRequests()
	if err != nil || !slices.ContainsFunc(all, same) {
		return
	}
	if err := s.changePending(ctx, s.pendingFile(), func(all []PendingRequest) []PendingRequest { return slices.DeleteFunc(all, same) }); err != nil {
		s.Note("cannot remove the pending request: %v", err)
	}
}

// withoutLimits returns the arguments of a command without the flags that only
// limit an approval. The user's limits may differ from the agent's.
func withoutLimits(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[0] == "approve" && (args[i] == "--expires" || args[i] == "--digest") {
			i++ // its value
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// PendingRequests returns the pending requests of the last seven days, oldest
// first.
func (s *Setup) PendingRequests() ([]PendingRequest, error) {
	file := s.pendingFile()
	if file == nil {
		return nil, nil
	}
	data, err := file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pending requests: %w", err)
	}
	all, err := decodePending(data)
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "to begin a new list, remove the file", "list pending requests: %s: %w", s.pendingPath(), err)
	}
	return all, nil
}

func (s *Setup) changePending(ctx context.Context, file *privatefile.File, change func([]PendingRequest) []PendingRequest) error {
	return file.Change(ctx, func(old []byte) ([]byte, error) {
		var all []PendingRequest
		if old != nil {
			var err error
			if all, err = decodePending(old); err != nil {
				return nil, fmt.Errorf("%s: %w", s.pendingPath(), err)
			}
		}
		return json.MarshalIndent(pendingFile{pendingVersion, change(all)}, "", "  ")
	})
}

// decodePending decodes a file with pending requests. It omits requests that
// are too old.
func decodePending(data []byte) ([]PendingRequest, error) {
	if err := privatefile.CheckVersion(data, pendingVersion); err != nil {
		return nil, err
	}
	var f pendingFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("damaged file: %w", err)
	}
	return slices.DeleteFunc(f.Requests, func(r PendingRequest) bool { return time.Since(r.Time) > pendingRetention || len(r.Args) == 0 }), nil
}
