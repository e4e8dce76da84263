package config

// DefaultStickyKeys are the places a session key is looked for, the first found
// wins. Two of them need more than a look-up, which package route does: the
// generation at the end of x-codex-window-id is cut off, and metadata.user_id
// holds the session inside a text of Claude Code's.
//
// Identifiers that change with every request (x-request-id,
// x-client-request-id, idempotency-key) are left out on purpose.
var DefaultStickyKeys = []StickyKey{
	{Header: "session_id"},
	{Header: "thread_id"},
	{Header: "x-codex-window-id"},
	{Header: "x-claude-code-session-id"},
	{Header: "x-session-id"},
	{Header: "x-session-affinity"},
	{Header: "x-opencode-session"},
	{Header: "x-amp-thread-id"},
	{Header: "x-task-id"},
	{Header: "x-roo-task-id"},
	{Header: "x-qwen-code-session-id"},
	{Body: []string{"prompt_cache_key"}},
	{Body: []string{"session_id"}},
	{Body: []string{"conversation_id"}},
	{Body: []string{"metadata", "session_id"}},
	{Body: []string{"metadata", "user_id"}},
	{Body: []string{"conversation"}},
}
