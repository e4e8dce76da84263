//go:build !unix

package config

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a file in a directory has that directory's owner.
func keepOwner(*os.File, fs.FileInfo) {}
