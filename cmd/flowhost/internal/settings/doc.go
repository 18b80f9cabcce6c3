// Package settings reads flowhost.hcl, the settings file of a host. All problems are
// collected and shown with their lines. Flags override settings; the commands do that.
package settings
