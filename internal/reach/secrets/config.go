package secrets

import (
	"log/slog"
	"net/http"

	"github.com/flowhost/flowhost/run/access"
)

// Config is where a Store finds secrets.
type Config struct {
	Deployed access.Deployed // required

	// Allow is the operator's bound on a flow, now; nil: no allow block was written. Default:
	// there is none.
	Allow func(flow string) *access.Allow

	// Env reads an environment variable of the host; default os.LookupEnv.
	Env func(name string) (string, bool)

	// AgeIdentities are paths of files with identities of age, as age-keygen writes them.
	// They are read for each lookup.
	AgeIdentities []string

	Vault VaultConfig

	// Seen receives each value that was read, and Vault's token, before they are used:
	// values are masked from then on. It is called again while they stay in use. Default:
	// nobody receives them.
	Seen func(values ...string)

	Transport http.RoundTripper // for Vault; default: one that uses no proxy
	Log       *slog.Logger      // default: none
}

// VaultConfig is how a Vault or OpenBao server is reached. The environment is not asked for
// anything that is missing here.
type VaultConfig struct {
	Address   string // "https://vault.internal:8200"; empty: there is none
	TokenFile string // path of a file with the token, as an agent writes it; read for each lookup
	TokenEnv  string // environment variable with the token, when there is no TokenFile
	Namespace string // default: none
	CA        string // path of a PEM file; default: the system's authorities
}
