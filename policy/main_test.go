package policy_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if work := os.Getenv(workVariable); work != "" {
		os.Exit(child(work))
	}
	goleak.VerifyTestMain(m)
}
