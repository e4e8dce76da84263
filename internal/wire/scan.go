package wire

// Span is a stretch of bytes: from Start up to, not including, End.
type Span struct{ Start, End int }
