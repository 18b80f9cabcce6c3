// Package siblings chooses what a flow file that is loaded by itself needs of the other
// files of its directory: the blocks to which it refers, those to which these refer, and
// the defaults. The rest of these files is blank, so that mistakes in it matter to nobody,
// and every place stays what it was.
package siblings
