package wire

import "time"

// ParseWait finds in free text how long it says to wait, as in "try again in
// 7m12.5s" or "retry after 37 seconds". It is false where the text says nothing.
func ParseWait(text string) (time.Duration, bool) { return 0, false }
