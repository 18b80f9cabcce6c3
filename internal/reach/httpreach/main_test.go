package httpreach_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}
