// Package compile makes native code of modules in child processes, whose processor
// time and memory are limited, and keeps it in a directory.
//
// A [Compiler] starts the children. [Child] is their main function: it reads a job and
// the module from stdin and leaves the native code in the cache, from which the parent
// loads it. [OpenCache] opens the directory that survives the process. It holds native
// code that runs without further checks, so only this user may write to it.
package compile
