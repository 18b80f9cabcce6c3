package secrets

import (
	"bytes"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// Bounds of files of age.
const (
	maxEncrypted = 2 << 20 // armor takes more than what it protects
	maxObject    = 1 << 20
	maxIdentity  = 64 << 10
)

// readAge returns a member of the object in an encrypted file.
func (s *Store) readAge(path, key string) (string, *failure) {
	identities, failed := s.identities()
	if failed != nil {
		return "", failed
	}
	encrypted, _, failed := readFile(path, maxEncrypted)
	if failed != nil {
		return "", failed
	}
	plain, failed := decrypt(encrypted, identities)
	if failed == nil {
		var value string
		if value, failed = member(plain, key); failed == nil {
			return value, nil
		}
	}
	failed.cause = path + failed.cause
	return "", failed
}

// identities reads the files that the operator has named. The errors of age are left out:
// they may quote a line.
func (s *Store) identities() ([]age.Identity, *failure) {
	var all []age.Identity
	for _, path := range s.config.AgeIdentities {
		content, failed := s.readPrivate(path, maxIdentity)
		if failed != nil {
			return nil, &failure{text: "an identity of age cannot be read", cause: failed.cause, retryable: true}
		}
		some, err := age.ParseIdentities(bytes.NewReader(content))
		if err != nil {
			return nil, &failure{text: "an identity of age cannot be read", cause: path + " has a line that is no identity, write it with age-keygen", retryable: true}
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil, &failure{text: "the host has no identities of age: the operator names their files in the host's settings"}
	}
	return all, nil
}

// decrypt returns what is in a file of age, armored or not.
func decrypt(encrypted []byte, identities []age.Identity) ([]byte, *failure) {
	var from io.Reader = bytes.NewReader(encrypted)
	if bytes.HasPrefix(bytes.TrimLeft(encrypted, " \t\r\n"), []byte(armor.Header)) {
		from = armor.NewReader(from)
	}
	plain, err := age.Decrypt(from, identities...)
	if err != nil {
		return nil, &failure{text: "its file cannot be decrypted: it is damaged, no file of age, or for other recipients than the host", retryable: true}
	}
	content, err := io.ReadAll(io.LimitReader(plain, maxObject+1))
	switch {
	case err != nil:
		return nil, &failure{text: "its file cannot be decrypted: it is damaged", retryable: true}
	case len(content) > maxObject:
		return nil, &failure{text: "its file holds more than 1 MiB"}
	}
	return content, nil
}
