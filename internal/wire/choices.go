package wire

import "math/bits"

// manyChoices stands for every number of choices beyond those that a reader tells apart:
// only the dialect's own end ends so many.
const manyChoices = 65

// choices follows the answers that come at once in one stream, each of which begins and
// ends by itself.
type choices struct {
	begun, done uint64 // by index: choices that had content, choices that finished
}

// choiceBit is the bit of the choice that a raw index names; the first one's where it
// names none.
func choiceBit(raw []byte) uint64 {
	if n, ok := jsonInt(raw); ok && n >= 0 && n < 64 {
		return 1 << n
	}
	return 1
}

// said notes content of a choice. Behind the end of that choice it shows that the
// upstream's finish reasons end nothing.
func (c *choices) said(choice uint64, ev *event) {
	c.begun |= choice
	ev.resumed = ev.resumed || c.done&choice != 0
}

// tell tells how many have ended, and whether others are still open.
func (c *choices) tell(ev *event) {
	ev.partial, ev.finished = c.begun&^c.done != 0, bits.OnesCount64(c.done)
}
