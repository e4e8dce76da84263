package probe

// Kept collects the beginning of an answer's body, decoded, for whoever wants to
// look at it when the answer is over. It belongs to whoever reads the answer.
type Kept struct {
	Text []byte
	Size int64 // of the whole body, as far as it was read

	limit int
}

// Keep collects at most limit bytes.
func Keep(limit int) *Kept { return &Kept{limit: limit} }

func (k *Kept) add(plain []byte) {
	k.Size += int64(len(plain))
	if room := k.limit - len(k.Text); room > 0 {
		k.Text = append(k.Text, plain[:min(room, len(plain))]...)
	}
}
