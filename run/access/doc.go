// Package access is the vocabulary of what a call may reach outside its sandbox:
// operations and their answers, connections, secrets, grants, and the policy under which a
// call runs. Everything in it is data that travels and is recorded; packages below
// internal/reach perform operations.
package access
