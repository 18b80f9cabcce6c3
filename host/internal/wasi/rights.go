package wasi

// Rights of a descriptor. WASI has given them up; they are reported, as guests
// recognize directories and terminals by them, and only the two that are the mode of
// a file to be opened are looked at.
const (
	rightDatasync uint64 = 1 << iota
	rightRead
	rightSeek
	rightSetFlags
	rightSync
	rightTell
	rightWrite
	rightAdvise
	rightAllocate
	rightCreateDirectory
	rightCreateFile
	rightLinkSource
	rightLinkTarget
	rightOpen
	rightReaddir
	rightReadlink
	rightRenameSource
	rightRenameTarget
	rightPathStat
	rightPathSetSize
	rightPathSetTimes
	rightStat
	rightSetSize
	rightSetTimes
	rightSymlink
	rightRemoveDirectory
	rightUnlink
	rightPoll
)

const (
	fileRights = rightDatasync | rightRead | rightSeek | rightSetFlags | rightSync | rightTell |
		rightWrite | rightAdvise | rightAllocate | rightStat | rightSetSize | rightSetTimes | rightPoll

	directoryRights = rightDatasync | rightSetFlags | rightSync | rightCreateDirectory |
		rightCreateFile | rightLinkSource | rightLinkTarget | rightOpen | rightReaddir | rightReadlink |
		rightRenameSource | rightRenameTarget | rightPathStat | rightPathSetSize | rightPathSetTimes |
		rightStat | rightSetTimes | rightSymlink | rightRemoveDirectory | rightUnlink
)

// rights gives those of a file and those of what is opened below it.
func rights(filetype uint8) (base, inheriting uint64) {
	switch filetype {
	case filetypeDirectory:
		return directoryRights, fileRights | directoryRights
	case filetypeCharacterDevice:
		return fileRights &^ (rightSeek | rightTell), 0 // how C libraries know a terminal
	}
	return fileRights, 0
}
