package wire

// Usage is what an answer says it used, in tokens, in one normal form for every
// vendor: Input holds everything that was read, cached and newly cached tokens
// included, Output holds reasoning, Total is Input plus Output. -1 means that the
// answer did not say; that is not the same as 0 and is never guessed.
type Usage struct {
	Input      int64 // tokens read, with Cached and CacheWrite
	Output     int64 // tokens written, with Reasoning
	Cached     int64 // part of Input that came from the vendor's cache
	CacheWrite int64 // part of Input that was put into the vendor's cache
	Reasoning  int64 // part of Output that the model kept to itself
	Total      int64 // Input plus Output
}

// NoUsage is the usage of an answer that reported none.
func NoUsage() Usage { return Usage{-1, -1, -1, -1, -1, -1} }
