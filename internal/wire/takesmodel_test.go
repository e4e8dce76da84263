package wire

import "testing"

func TestWhatBelongsToAModel(t *testing.T) {
	for line, want := range map[[2]string]bool{
		{"POST", "/v1/chat/completions"}:             true,
		{"POST", "/chat/completions/"}:               true,
		{"POST", "/v1/responses"}:                    true,
		{"POST", "/v1/responses/compact"}:            true,
		{"POST", "/v1/responses/input_tokens"}:       true,
		{"POST", "/v1/messages/count_tokens"}:        true,
		{"POST", "/v1/messages/batches"}:             true,
		{"POST", "/v1/embeddings"}:                   true,
		{"POST", "/v2/rerank"}:                       true,
		{"POST", "/v1/images/generations"}:           true,
		{"POST", "/v1/audio/speech"}:                 true,
		{"POST", "/v1/realtime/client_secrets"}:      true,
		{"POST", "/api/chat"}:                        true,
		{"POST", "/api/show"}:                        true,
		{"POST", "/v1beta/models/m:countTokens"}:     true,
		{"POST", "/openai/deployments/m/embeddings"}: true,
		{"POST", "/model/m/invoke"}:                  true,
		{"POST", "/v1/ocr"}:                          true, {"POST", "/v1/chat/classifications"}: true, {"POST", "/v1/complete"}: true, {"POST", "/v2/chat"}: true,
		{"POST", "/v1/multimodalembeddings"}: true, {"POST", "/infill"}: true, {"POST", "/invocations"}: true, {"POST", "/v1beta/interactions"}: true,
		{"POST", "/v1/video/generations"}: true, {"POST", "/api/v1/services/aigc/text-generation/generation"}: true, {"POST", "/api/v3/contents/generations/tasks"}: true,
		{"POST", "/v1beta/models/m:predictLongRunning"}: true, {"POST", "/v1beta/models/m:batchEmbedContents"}: true, {"POST", "/v1beta/models%2Fm%3AembedContent"}: true,
		{"POST", "/v1/projects/p/locations/l/endpoints/7:rawPredict"}: true, {"POST", "/v1/models/m:classify"}: true, {"POST", "/v1/models/m:explain"}: true,
		{"POST", "/v1/models/owner/m/predictions"}: true, {"POST", "/v2/models/m/infer"}: true, {"POST", "/v2/models/m/generate"}: true, {"POST", "/models/m"}: true,
		// What changes a model, or says who may use it.
		{"POST", "/v1beta/tunedModels/m:transferOwnership"}: false, {"POST", "/v1beta/tunedModels/m/permissions"}: false,
		{"POST", "/v1beta/models/m:delete"}: false, {"POST", "/v1beta/models/m%3Adelete"}: false, {"POST", "/v1beta/models/m%253Adelete"}: false, {"POST", "/v1beta/models%2Fm:delete/"}: false,
		{"POST", "/v1/projects/p/locations/l/models/m:export"}: false, {"POST", "/v1/projects/p/locations/l/endpoints/m:undeployModel"}: false,
		{"POST", "/v1/projects/p/locations/l/models/m:GenerateContent"}: false, {"POST", "/v1beta/models/m:generateContent:delete"}: false,
		{"POST", "/openai/deployments/m:delete"}: false, {"POST", "/v1internal:onboardUser"}: false, {"POST", "/v1/models/m:onboardUser"}: false,
		{"POST", "/v2/repository/models/m/unload"}: false, {"POST", "/v1/models/m/delete"}: false, {"POST", "/v1/models/m%2Fversions"}: false,
		{"POST", "/v1/tasks"}:                       false,
		{"GET", "/v1/models/m"}:                     true,
		{"HEAD", "/v1/models/m"}:                    true,
		{"GET", "/v1/models"}:                       false,
		{"DELETE", "/v1/models/m"}:                  false,
		{"PUT", "/v1/chat/completions"}:             false,
		{"FOO", "/v1/chat/completions"}:             false,
		{"GET", "/v1/chat/completions"}:             false,
		{"GET", "/v1/responses/resp_1"}:             false,
		{"POST", "/v1/responses/resp_1/cancel"}:     false,
		{"DELETE", "/v1/files/file-1"}:              false,
		{"GET", "/v1/files/file-1/content"}:         false,
		{"POST", "/v1/files"}:                       false,
		{"POST", "/v1/batches"}:                     false,
		{"POST", "/v1/organization/admin_api_keys"}: false,
		{"POST", "/v1/threads/t/messages"}:          false,
		{"POST", "/v1/fine_tuning/jobs"}:            false,
		{"POST", "/v1/evals"}:                       false,
		{"POST", "/v1/sessions"}:                    false,
		{"POST", "/api/delete"}:                     false,
		{"POST", "/api/pull"}:                       false,
		{"POST", "/"}:                               false,
		{"POST", ""}:                                false,
		{"POST", "/anything"}:                       false,
	} {
		if got := TakesModel(line[0], line[1]); got != want {
			t.Errorf("%s %s: %v", line[0], line[1], got)
		}
	}
}
