package bus

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/bcrypt"
)

// Accounts of the embedded server. Nothing is exported from one to another.
const (
	accountSystem  = "SYS"
	accountJournal = "JOURNAL"
	accountApp     = "FLOWHOST"
)

// accountsText is in the server's configuration language: its options have no
// other way to enable JetStream for a named account before the server starts.
const accountsText = `
system_account: ` + accountSystem + `
accounts {
  ` + accountSystem + ` {}
  ` + accountJournal + ` { jetstream: enabled }
  ` + accountApp + ` { jetstream: enabled }
}
`

// Users of the embedded server that have passwords.
const (
	userClient   = "client"
	userOperator = "operator"
)

// engineKeys are this process's keys for the two accounts that it enters. They
// are made at start and never leave the process.
type engineKeys struct {
	app, journal nkeys.KeyPair
}

func newEngineKeys() (engineKeys, error) {
	app, err := nkeys.CreateUser()
	if err != nil {
		return engineKeys{}, fmt.Errorf("key of the engine: %w", err)
	}
	journal, err := nkeys.CreateUser()
	if err != nil {
		return engineKeys{}, fmt.Errorf("key of the engine: %w", err)
	}
	return engineKeys{app: app, journal: journal}, nil
}

// addAccounts sets the accounts and the engine's users.
func addAccounts(opts *server.Options, keys engineKeys) error {
	if err := opts.ProcessConfigString(accountsText); err != nil {
		return fmt.Errorf("accounts of the NATS server: %w", err)
	}
	if err := addEngine(opts, accountApp, keys.app); err != nil {
		return err
	}
	return addEngine(opts, accountJournal, keys.journal)
}

func addEngine(opts *server.Options, account string, key nkeys.KeyPair) error {
	public, err := key.PublicKey()
	if err != nil {
		return fmt.Errorf("key of the engine: %w", err)
	}
	opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: public, Account: findAccount(opts, account)})
	return nil
}

// addUser adds a user with a password. Its hash is of the lowest cost: the
// password is random, with 130 bits, so that guessing is hopeless anyway.
func addUser(opts *server.Options, c natsContext, permissions *server.Permissions) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(c.Password), bcrypt.MinCost)
	if err != nil {
		return fmt.Errorf("password of NATS user %s: %w", c.User, err)
	}
	opts.Users = append(opts.Users, &server.User{
		Username: c.User, Password: string(hash),
		Account: findAccount(opts, accountApp), Permissions: permissions,
	})
	return nil
}

func findAccount(opts *server.Options, name string) *server.Account {
	for _, a := range opts.Accounts {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// clientPermissions let a program ask for runs and follow events: nothing else
// of flowhost's subjects, and no change to any stream.
func clientPermissions(subjects []string, log *slog.Logger) *server.Permissions {
	publish := []string{
		prefixTrigger + ">",
		prefixAPI + ">",
		"$JS.API.INFO",
		"$JS.API.STREAM.NAMES",
		"$JS.API.STREAM.INFO." + StreamEvents,
		"$JS.API.CONSUMER.CREATE." + StreamEvents,
		"$JS.API.CONSUMER.CREATE." + StreamEvents + ".>",
		"$JS.API.CONSUMER.DURABLE.CREATE." + StreamEvents + ".*",
		"$JS.API.CONSUMER.INFO." + StreamEvents + ".*",
		"$JS.API.CONSUMER.NAMES." + StreamEvents,
		"$JS.API.CONSUMER.LIST." + StreamEvents,
		"$JS.API.CONSUMER.MSG.NEXT." + StreamEvents + ".*",
		"$JS.API.CONSUMER.DELETE." + StreamEvents + ".*",
		"$JS.ACK." + StreamEvents + ".>",
		"$JS.FC." + StreamEvents + ".>",
	}
	for _, subject := range subjects {
		if reserved(subject) {
			log.Warn("the client user may not publish on a subject that covers flowhost's own: use the operator user", "subject", subject)
			continue
		}
		publish = append(publish, subject)
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", prefixRun + ">"}},
	}
}

// AllowClient puts subjects in place of those of [ServerConfig.ClientSubjects].
// Connections stay as they are, with the new rights.
func (s *Server) AllowClient(subjects []string) error {
	s.work.Lock()
	defer s.work.Unlock()
	if s.isClosed() {
		return errStopped
	}
	if slices.Equal(subjects, s.cfg.ClientSubjects) {
		return nil
	}
	s.cfg.ClientSubjects = subjects // also for a server that has to be started again
	options := s.options.Clone()
	for _, user := range options.Users {
		if user.Username == userClient {
			user.Permissions = clientPermissions(subjects, s.log)
		}
	}
	if err := s.current().ReloadOptions(options); err != nil {
		return fmt.Errorf("embedded NATS server: rights of the client user: %w", err)
	}
	s.options = options
	return nil
}

// Listened reports whether anybody listens to a subject, here or in an account that
// imports it.
func (s *Server) Listened(subject string) bool {
	account, err := s.current().LookupAccount(accountApp)
	return err == nil && account.SubscriptionInterest(subject)
}

// reserved reports whether a permission for the subject would reach the streams'
// management, the events or the replies to others.
func reserved(subject string) bool {
	for _, own := range []string{prefixOwn + ">", "$JS.>", "$SYS.>", "$SRV.>", "_INBOX.>"} {
		if server.SubjectsCollide(subject, own) {
			return true
		}
	}
	return false
}
