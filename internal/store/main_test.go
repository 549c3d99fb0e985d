package store_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		writerMain()
	}
	code := storetest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}
