package buildinfo

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set by the linker, see the Makefile.
var version string

// Info is what the program was built from.
type Info struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Wazero   string `json:"wazero"`
	NATS     string `json:"nats_server"`
}

// Semantic is the version if it has the form that NATS services require, and 0.0.0 for
// a build without a tag. Form: https://semver.org.
func (b Info) Semantic() string {
	bare := strings.TrimPrefix(b.Version, "v")
	if semver.MatchString(bare) {
		return bare
	}
	return "0.0.0"
}

var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+)?$`)

// This is the build of the running program.
func This() Info {
	b := Info{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/tetratelabs/wazero":
			b.Wazero = d.Version
		case "github.com/nats-io/nats-server/v2":
			b.NATS = d.Version
		}
	}
	return b
}
