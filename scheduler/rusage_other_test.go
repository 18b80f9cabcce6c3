//go:build !unix

package scheduler

import "time"

func processorTime() time.Duration { return 0 }
