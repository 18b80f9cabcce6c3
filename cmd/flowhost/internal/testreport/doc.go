// Package testreport writes the results of flow tests as JSON and in JUnit format.
package testreport
