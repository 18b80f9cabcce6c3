package natsd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
)

// Accounts of the server. [accountsText] defines what passes from one to another.
const (
	accountSystem = "SYS"
	accountEngine = "ENGINE" // journal, triggers, history, logs, dead letters: the engine only
	accountApp    = "APP"    // the operator's subjects and streams, and the events
	accountClient = "CLIENT" // programs that ask for runs: no JetStream
)

// AccountOperator is the account of the embedded server's operator.
const AccountOperator = accountApp

// Users of the server. The engine enters two accounts.
const (
	userEngine   = "engine"
	userApp      = "engine-app"
	userOperator = "operator"
	userClient   = "client"
)

// Inbox prefixes. Replies to one user reach no other.
const (
	inboxOperator = "_INBOX_operator"
	inboxClient   = "_INBOX_client"
)

// Limits of each connection of clients, and of all of them together. They are few because
// each may have the server wait for the rest of a message of 8 MiB.
const (
	maxClients    = 32
	maxClientSubs = 1000
)

// answerTimeout is how long the server keeps the way back of a request, which must be
// longer than the longest wait.
const answerTimeout = api.MaxWait + api.AnswerTime

// login is what a user proves to be with: a key or a password.
type login struct {
	nkey     string // public key; empty: a password
	password string
}

// logins are those of the users. A user without one is left out.
type logins map[string]login

// accountsText gives accounts, users and permissions in the server's configuration
// language. The embedded server is configured with it, and an external one should be.
//
// Nothing but service imports leads into ENGINE, and the server replaces the reply
// subject of each request that takes one: the answer finds back to the sender's
// account, whatever subject the sender has named there. So no reply subject reaches a
// stream of another account.
func accountsText(users logins, subjects []string) string {
	var b strings.Builder
	in := func(account string, parts ...[]string) {
		fmt.Fprintf(&b, "  %s {\n", account)
		for i, part := range parts {
			if name := []string{"", "users", "exports", "imports"}[i]; name == "" {
				for _, line := range part {
					fmt.Fprintf(&b, "    %s\n", line)
				}
			} else if len(part) > 0 {
				fmt.Fprintf(&b, "    %s: [\n      %s\n    ]\n", name, strings.Join(part, "\n      "))
			}
		}
		b.WriteString("  }\n")
	}
	var exports, imports []string // of what flows listen to themselves
	for _, subject := range disjoint(subjects) {
		exports = append(exports, fmt.Sprintf("{ service: %q, accounts: [%s], response_threshold: %q }", subject, accountClient, answerTimeout))
		imports = append(imports, fmt.Sprintf("{ service: { account: %s, subject: %q }, share: true }", accountApp, subject))
	}
	requests := []string{
		fmt.Sprintf("{ service: { account: %s, subject: %q }, share: true }", accountEngine, bus.PrefixAPI+">"),
		fmt.Sprintf("{ service: { account: %s, subject: %q } }", accountEngine, bus.PrefixTrigger+"*"),
	}
	fmt.Fprintf(&b, "system_account: %s\naccounts {\n  %s {}\n", accountSystem, accountSystem)
	in(accountEngine, []string{"jetstream: enabled"}, users.text(nil, userEngine), []string{
		fmt.Sprintf("{ service: %q, accounts: [%s, %s], response_threshold: %q }", bus.PrefixAPI+">", accountApp, accountClient, answerTimeout),
		fmt.Sprintf("{ service: %q, accounts: [%s, %s] }", bus.PrefixTrigger+"*", accountApp, accountClient),
		fmt.Sprintf("{ service: \"$SRV.>\", accounts: [%s], response_type: stream }", accountApp),
	})
	in(accountApp, []string{"jetstream: enabled"}, users.text(nil, userApp, userOperator),
		append([]string{fmt.Sprintf("{ stream: %q, accounts: [%s] }", bus.PrefixRun+">", accountClient)}, exports...),
		append(slices.Clone(requests), fmt.Sprintf("{ service: { account: %s, subject: \"$SRV.>\" } }", accountEngine)))
	in(accountClient, []string{fmt.Sprintf("limits { max_connections: %d, max_subscriptions: %d }", maxClients, maxClientSubs)},
		users.text(subjects, userClient), nil,
		append(append(requests, fmt.Sprintf("{ stream: { account: %s, subject: %q } }", accountApp, bus.PrefixRun+">")), imports...))
	b.WriteString("}\n")
	return b.String()
}

// text gives the users of an account, one a line.
func (l logins) text(subjects []string, users ...string) []string {
	var lines []string
	for _, user := range users {
		by, ok := l[user]
		if !ok {
			continue
		}
		proof := "nkey: " + by.nkey
		if by.nkey == "" {
			proof = fmt.Sprintf("user: %q, password: %q", user, by.password)
		}
		lines = append(lines, "{ "+proof+rightsOf(user, subjects).text()+" }")
	}
	return lines
}

// engineKeys are this process's keys for the two accounts that it enters. They
// are made at start and never leave the process.
type engineKeys struct {
	engine, app nkeys.KeyPair
}

func newEngineKeys() (keys engineKeys, err error) {
	if keys.engine, err = nkeys.CreateUser(); err == nil {
		keys.app, err = nkeys.CreateUser()
	}
	if err != nil {
		return engineKeys{}, fmt.Errorf("key of the engine: %w", err)
	}
	return keys, nil
}

// addTo adds the logins of the engine's users.
func (k engineKeys) addTo(users logins) error {
	for user, pair := range map[string]nkeys.KeyPair{userEngine: k.engine, userApp: k.app} {
		public, err := pair.PublicKey()
		if err != nil {
			return fmt.Errorf("key of the engine: %w", err)
		}
		users[user] = login{nkey: public}
	}
	return nil
}

// setAccounts puts accounts and users into a server's options, in place of those that
// are there.
func setAccounts(opts *server.Options, users logins, subjects []string) error {
	fresh := &server.Options{}
	if err := fresh.ProcessConfigString(accountsText(users, subjects)); err != nil {
		return fmt.Errorf("accounts of the NATS server: %w", err)
	}
	opts.Accounts, opts.Users, opts.Nkeys, opts.SystemAccount = fresh.Accounts, fresh.Users, fresh.Nkeys, fresh.SystemAccount
	return nil
}

// AllowClient puts subjects in place of those of [Config.ClientSubjects].
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
	if err := setAccounts(options, s.users, grantable(subjects, s.log)); err != nil {
		return err
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
