//go:build !linux

package archive

import "errors"

func mountTmpfs(string, int) error { return errors.ErrUnsupported }
func unmount(string) error         { return nil }
