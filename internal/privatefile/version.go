package privatefile

import (
	"encoding/json"
	"errors"
	"fmt"
)

var errNotJSON = errors.New("cannot decode JSON")

// CheckVersion returns an error unless the member "version" of a JSON file is
// between 1 and highest. Call it before decoding the rest, because a newer
// version of the program may have written the file in a different format. The
// error then tells the user to update. The caller adds the path. The error
// contains no other content of the file.
func CheckVersion(data []byte, highest int) error {
	var f struct {
		Version int `json:"version"`
	}
	switch err := json.Unmarshal(data, &f); {
	case err != nil:
		return errNotJSON
	case f.Version > highest:
		return fmt.Errorf("unsupported version %d (this program reads up to %d); update loadout", f.Version, highest)
	case f.Version < 1:
		return fmt.Errorf("unsupported version %d", f.Version)
	}
	return nil
}
