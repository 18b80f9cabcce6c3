// Package httpreach performs the http operations of guests: for a connection, whose
// credentials a guest never sees, and for the http grant, which has none.
//
//	client, err := httpreach.New(httpreach.Config{Secrets: secrets})
//	answer := client.Do(ctx, caller, policy, connection, operation)
//	client.Close()
//
// The head of an operation is an object with the members connection ("" for the grant),
// method (default GET), url (absolute, or for a connection a path below its base URL),
// headers, idempotency_key (true or a string), timeout_ms and redirects; its body is the
// request's. The head of an answer has status, headers and url; its body is the response's,
// decoded. Each status is an answer, 404 and 503 too. Everything else is a fault.
//
// # What is checked, and when
//
// The rules of the flow and of the operator are matched with the canonical target before a
// name is resolved or a secret is read. A name is resolved once for a dial and all of its
// addresses are checked, so one that is not public refuses the request; the socket's address
// is checked again right before it connects. What is dialed is the URL that was matched. An
// address that is not public opens by address and port, and only when author and operator
// both name it. Names with a dot are looked up as they are, without the search domains of the
// host. No proxy is taken from the environment.
//
// Requests of different policies never share a network connection. Redirects are off unless
// granted, and each is checked like the first request; one to another origin takes along only
// headers that describe what is accepted and sent. Headers of the host, and those that a
// credential fills, are refused. Cookies, and echoes of credentials, are removed from answers.
//
// # Bounds
//
// Headers of both directions are bounded in number and bytes, bodies in bytes after decoding,
// an operation in time, and a connection in operations at once. Idle network connections are
// closed after 90 seconds, and the least recently used policies above 64 lose theirs.
//
// # Goroutines
//
// Those of net/http, one pair for each network connection. Close cancels the operations that
// are under way, waits for them and closes all network connections. A Client may be used by
// several goroutines.
package httpreach
