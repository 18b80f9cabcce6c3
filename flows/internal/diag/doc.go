// Package diag collects what is wrong with flow files: diagnostics of HCL, each with a
// stable rule, its place, and a detail that ends with what to do.
//
// A [Report] collects them, [Report.Sorted] gives them in order, each once and at most
// [MaxShown], and [JSON] writes them for editors. The rest are words for messages: the
// nearest name, places, lists, paths.
package diag
