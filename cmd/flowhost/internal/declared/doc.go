// Package declared lists what flow files and the settings of a host declare to reach:
// connections and secrets, who may use them, and where they are declared. It shows no
// credentials.
package declared
