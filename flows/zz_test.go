package flows

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

func TestZ(t *testing.T) {
	runtime.LockOSThread()
	for range 3 {
		c, f := attempt(t, os.Getenv("E"), worstValues[os.Getenv("A")](125000), worstValues[os.Getenv("B")](125000))
		fmt.Println(c.cpu, c.bytes>>20)
		if f != nil {
			fmt.Println(f.Message[:min(200, len(f.Message))])
		}
	}
}
