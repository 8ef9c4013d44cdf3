package profile

import (
	"fmt"
	"os"
)

// ReadNames reads of the profile at path what has names: everything but the tables. It
// is for who only wants to know what is in it.
func ReadNames(path string) (*Profile, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	header, _, err := sections(file)
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", path, err)
	}
	p := new(Profile)
	if err := readHeader(header, p); err != nil {
		return nil, fmt.Errorf("read profile %s: %w", path, err)
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("read profile %s: %w", path, err)
	}
	return p, nil
}
