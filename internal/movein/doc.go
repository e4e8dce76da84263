// Package movein turns the configuration of another proxy into one of ours: of
// LiteLLM, CLIProxyAPI, claude-code-router, and of the two programs whose files
// understudy reads as they are, the pool and the chain. It knows those files, the
// base URLs of the vendors they name, and what has a counterpart here; what has
// none becomes a comment at the place where it matters. It reads and writes bytes
// and knows nothing of files, terminals and running processes.
//
// No secret leaves it but in the configuration itself, and there only where the
// caller asks for it: not in a comment, not in a problem, not in the summary.
package movein
