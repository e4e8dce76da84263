package movein

import (
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// A vendor is where a provider's prefix leads. The base URLs are those of the
// vendors' own references; env is the variable that LiteLLM reads the key from.
type vendor struct {
	base  string // of the dialect that LiteLLM's clients speak, chat completions; "" = api_base is needed
	env   string // "" = no key
	style string // "" = bearer
	// own is the vendor's own dialect where that is another one, with its base and
	// the way its key is sent; for clients that speak it.
	own, ownBase, ownStyle string
}

// vendors by LiteLLM's prefixes.
var vendors = map[string]vendor{
	"openai":                 {base: "https://api.openai.com/v1", env: "OPENAI_API_KEY"},
	"text-completion-openai": {base: "https://api.openai.com/v1", env: "OPENAI_API_KEY"},
	"custom_openai":          {env: "OPENAI_API_KEY"},
	"openai_like":            {env: "OPENAI_LIKE_API_KEY"},
	"hosted_vllm":            {env: "HOSTED_VLLM_API_KEY"},
	"vllm":                   {env: "HOSTED_VLLM_API_KEY"},
	"litellm_proxy":          {env: "LITELLM_PROXY_API_KEY"},
	"lm_studio":              {env: "LM_STUDIO_API_KEY"},
	"llamafile":              {base: "http://127.0.0.1:8080/v1"},
	"ollama":                 {base: "http://localhost:11434/v1"},
	"ollama_chat":            {base: "http://localhost:11434/v1"},
	"anthropic": {base: "https://api.anthropic.com/v1", env: "ANTHROPIC_API_KEY",
		own: "Messages (/v1/messages)", ownBase: "https://api.anthropic.com", ownStyle: "x-api-key"},
	"gemini": {base: "https://generativelanguage.googleapis.com/v1beta/openai", env: "GEMINI_API_KEY",
		own: "Gemini's API (generateContent)", ownBase: "https://generativelanguage.googleapis.com", ownStyle: "x-goog-api-key"},
	"azure":             {env: "AZURE_API_KEY", style: "api-key"},
	"groq":              {base: "https://api.groq.com/openai/v1", env: "GROQ_API_KEY"},
	"mistral":           {base: "https://api.mistral.ai/v1", env: "MISTRAL_API_KEY"},
	"codestral":         {base: "https://codestral.mistral.ai/v1", env: "CODESTRAL_API_KEY"},
	"deepseek":          {base: "https://api.deepseek.com/v1", env: "DEEPSEEK_API_KEY"},
	"xai":               {base: "https://api.x.ai/v1", env: "XAI_API_KEY"},
	"openrouter":        {base: "https://openrouter.ai/api/v1", env: "OPENROUTER_API_KEY"},
	"together_ai":       {base: "https://api.together.xyz/v1", env: "TOGETHERAI_API_KEY"},
	"fireworks_ai":      {base: "https://api.fireworks.ai/inference/v1", env: "FIREWORKS_AI_API_KEY"},
	"perplexity":        {base: "https://api.perplexity.ai", env: "PERPLEXITYAI_API_KEY"},
	"deepinfra":         {base: "https://api.deepinfra.com/v1/openai", env: "DEEPINFRA_API_KEY"},
	"cerebras":          {base: "https://api.cerebras.ai/v1", env: "CEREBRAS_API_KEY"},
	"nvidia_nim":        {base: "https://integrate.api.nvidia.com/v1", env: "NVIDIA_NIM_API_KEY"},
	"sambanova":         {base: "https://api.sambanova.ai/v1", env: "SAMBANOVA_API_KEY"},
	"moonshot":          {base: "https://api.moonshot.ai/v1", env: "MOONSHOT_API_KEY"},
	"dashscope":         {base: "https://dashscope.aliyuncs.com/compatible-mode/v1", env: "DASHSCOPE_API_KEY"},
	"volcengine":        {base: "https://ark.cn-beijing.volces.com/api/v3", env: "VOLCENGINE_API_KEY"},
	"meta_llama":        {base: "https://api.llama.com/compat/v1", env: "LLAMA_API_KEY"},
	"ai21":              {base: "https://api.ai21.com/studio/v1", env: "AI21_API_KEY"},
	"ai21_chat":         {base: "https://api.ai21.com/studio/v1", env: "AI21_API_KEY"},
	"friendliai":        {base: "https://api.friendli.ai/serverless/v1", env: "FRIENDLIAI_API_KEY"},
	"galadriel":         {base: "https://api.galadriel.com/v1", env: "GALADRIEL_API_KEY"},
	"github":            {base: "https://models.inference.ai.azure.com", env: "GITHUB_API_KEY"},
	"aihubmix":          {base: "https://aihubmix.com/v1", env: "AIHUBMIX_API_KEY"},
	"veniceai":          {base: "https://api.venice.ai/api/v1", env: "VENICE_AI_API_KEY"},
	"scaleway":          {base: "https://api.scaleway.ai/v1", env: "SCW_SECRET_KEY"},
	"nano-gpt":          {base: "https://nano-gpt.com/api/v1", env: "NANOGPT_API_KEY"},
	"poe":               {base: "https://api.poe.com/v1", env: "POE_API_KEY"},
	"chutes":            {base: "https://llm.chutes.ai/v1", env: "CHUTES_API_KEY"},
	"synthetic":         {base: "https://api.synthetic.new/openai/v1", env: "SYNTHETIC_API_KEY"},
	"gmi":               {base: "https://api.gmi-serving.com/v1", env: "GMI_API_KEY"},
	"publicai":          {base: "https://api.publicai.co/v1", env: "PUBLICAI_API_KEY"},
	"empower":           {base: "https://app.empower.dev/api/v1", env: "EMPOWER_API_KEY"},
	"xiaomi_mimo":       {base: "https://api.xiaomimimo.com/v1", env: "XIAOMI_MIMO_API_KEY"},
	"anyscale":          {base: "https://api.endpoints.anyscale.com/v1", env: "ANYSCALE_API_KEY"},
	"azure_ai":          {env: "AZURE_AI_API_KEY", style: "api-key"},
	"aiohttp_openai":    {env: "OPENAI_API_KEY"},
	"vercel_ai_gateway": {base: "https://ai-gateway.vercel.sh/v1", env: "VERCEL_AI_GATEWAY_API_KEY"},
}

// foreign are prefixes whose APIs understudy cannot speak to, with the reason.
var foreign = map[string]string{
	"bedrock":          "Amazon Bedrock's own API wants requests signed by AWS; its OpenAI-compatible endpoint takes a Bedrock API key: base_url https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
	"bedrock_converse": "Amazon Bedrock's own API wants requests signed by AWS",
	"vertex_ai":        "Vertex AI wants access tokens of Google Cloud that last an hour; a Gemini API key works with base_url https://generativelanguage.googleapis.com",
	"vertex_ai_beta":   "Vertex AI wants access tokens of Google Cloud that last an hour",
	"sagemaker":        "SageMaker wants requests signed by AWS",
	"sagemaker_chat":   "SageMaker wants requests signed by AWS",
	"github_copilot":   "GitHub Copilot's login is LiteLLM's own",
	"watsonx":          "watsonx has an API and a login of its own, which LiteLLM translates",
	"replicate":        "Replicate has an API of its own, which LiteLLM translates",
	"huggingface":      "LiteLLM looks the inference provider up; Hugging Face's own router takes chat completions: base_url https://router.huggingface.co/v1",
	"cohere":           "LiteLLM translates to Cohere's own API; Cohere's compatible one takes chat completions: base_url https://api.cohere.ai/compatibility/v1",
	"cohere_chat":      "LiteLLM translates to Cohere's own API; Cohere's compatible one takes chat completions: base_url https://api.cohere.ai/compatibility/v1",
	"cloudflare":       "Cloudflare's base URL holds the account: base_url https://api.cloudflare.com/client/v4/accounts/ACCOUNT/ai/v1",
	"databricks":       "Databricks' base URL holds the workspace: base_url https://WORKSPACE/serving-endpoints",
	"snowflake":        "Snowflake's base URL holds the account",
}

// messages are the hosts that answer Anthropic's Messages besides another
// dialect: where their clients' /v1/messages goes.
var messages = []struct{ host, base string }{
	{"api.anthropic.com", "https://api.anthropic.com"},
	{"openrouter.ai", "https://openrouter.ai/api"},
	{"api.deepseek.com", "https://api.deepseek.com/anthropic"},
	{"api.moonshot.ai", "https://api.moonshot.ai/anthropic"},
	{"api.moonshot.cn", "https://api.moonshot.cn/anthropic"},
	{"api.z.ai", "https://api.z.ai/api/anthropic"},
	{"open.bigmodel.cn", "https://open.bigmodel.cn/api/anthropic"},
	{"dashscope.aliyuncs.com", "https://dashscope.aliyuncs.com/apps/anthropic"},
	{"api-inference.modelscope.cn", "https://api-inference.modelscope.cn"},
	{"api.siliconflow.cn", "https://api.siliconflow.cn"},
	{"api.minimax.io", "https://api.minimax.io/anthropic"},
	{"api.minimaxi.com", "https://api.minimaxi.com/anthropic"},
}

// messagesBase is where a host answers Messages. Ollama does at its own port since
// 0.14.
func messagesBase(u *url.URL) (base string, ok bool) {
	for _, m := range messages {
		if strings.EqualFold(u.Hostname(), m.host) {
			return m.base, true
		}
	}
	if u.Port() == "11434" {
		return u.Scheme + "://" + u.Host, true
	}
	return "", false
}

// guess is the provider of a model whose name has no prefix, as LiteLLM knows the
// names of the large vendors' models; "" where it cannot be told.
func guess(model string) string {
	switch {
	case regexp.MustCompile(`^(gpt-|chatgpt-|o[1-9]|ft:gpt|text-embedding-|dall-e|whisper-|tts-|codex-|omni-moderation)`).MatchString(model):
		return "openai"
	case strings.HasPrefix(model, "claude"):
		return "anthropic"
	case strings.HasPrefix(model, "gemini"):
		return "vertex_ai"
	}
	return ""
}

var versionSegment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v[0-9]+(alpha|beta)?[0-9]*$`) })

// versioned reports a base URL whose last segment is a version, which stands for
// the one in the client's path.
func versioned(u *url.URL) bool {
	path := strings.TrimRight(u.Path, "/")
	return versionSegment().MatchString(path[strings.LastIndex(path, "/")+1:])
}

// endpoints are what a base URL of other programs may end in, though understudy
// takes the path from the client.
var endpoints = []string{"/chat/completions", "/completions", "/responses", "/messages", "/models", "/embeddings"}

// withoutEndpoint is a URL without an endpoint at its end.
func withoutEndpoint(u *url.URL) *url.URL {
	c := *u
	c.RawPath = ""
	c.Path = strings.TrimRight(c.Path, "/")
	for _, e := range endpoints {
		if rest, ok := strings.CutSuffix(c.Path, e); ok {
			c.Path = strings.TrimRight(rest, "/")
			break
		}
	}
	return &c
}
