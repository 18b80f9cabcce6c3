// Package httprule has the one canonical form of a request's target, and the rules that
// match it. The flow language checks rules with it, and the dialer of HTTP requests decides
// with it and then dials what it was given by it, so that no two parsers can differ about
// where a request leads.
//
//	rule, err := httprule.Parse("GET,HEAD https://*.example.com/data/**")
//	target, err := httprule.ParseTarget("https://EU.example.com./data/%61.csv?v=1")
//	rule.Match("GET", target)   // true
//	target.URL()                // "https://eu.example.com/data/a.csv?v=1"
//
// # Rules
//
// A rule is METHOD[,METHOD] scheme://host[:port]/path, and below the base URL of a
// connection METHOD[,METHOD] /path. The scheme is http or https, and the port that of the
// scheme unless it is written. A path segment * is any one segment that is not empty, and a
// last segment ** is the rest, at least one segment, which may be the empty one after a final
// slash: /a/** is /a/ and /a/b/c, not /a. A host *.example.com is any subdomain of any depth,
// except those that a public suffix below it gives to others, and never example.com itself.
// The query is not matched. A method is allowed when it is named, HEAD too.
//
// # Targets
//
// A target has no user, fragment, zone, relative segment, repeated slash, encoded slash or
// backslash, and no control character: it is refused, not repaired. What is repaired has one
// meaning only: letter case and the final dot of a host, IDNA, percent-encoding.
//
// The package starts no goroutines and looks nothing up. All its values may be shared.
package httprule
