// Package mail performs operations of kind mail: it sends one message over a connection of
// type smtp.
//
// The head of an operation is an object with these members, of which connection, to or cc,
// and subject are required:
//
//	{"connection": "alerts", "to": ["Ops <ops@example.com>"], "cc": [], "subject": "…",
//	 "reply_to": "team@example.com", "content_type": "text/plain; charset=utf-8",
//	 "headers": {"X-Order": "17", "In-Reply-To": "<…>"}}
//
// The body is what the content type says: a text, which is sent quoted-printable, a whole
// multipart entity, which is sent as it is, or anything else, which is sent in base64. The
// head of the answer has the message's id, and what the server replied:
//
//	{"message_id": "<…@example.com>", "reply": "2.0.0 queued as 4F1A"}
//
// The connection decides on the server, the sender and who may be addressed. Either all
// recipients get the message or none. Credentials are sent over TLS only. A message is sent
// at least once: should the attempt be repeated, the same message has the same id.
//
// Each operation has a network connection of its own and ends within five minutes. The
// package starts no goroutines that outlive an operation; [Client.Close] cancels the
// operations under way and waits for them.
package mail
