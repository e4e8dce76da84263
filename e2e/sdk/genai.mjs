// The @google/genai package: generateContent, as a stream and whole. The model travels in the path.

import { GoogleGenAI } from '@google/genai';

const contents = 'Say when the tide turns.';

function client({ baseURL, patience }) {
  return new GoogleGenAI({
    apiKey: 'sk-client',
    vertexai: false,
    httpOptions: { baseUrl: baseURL, timeout: patience, retryOptions: { attempts: 1 } },
  });
}

function take(chunk, result) {
  const candidate = chunk.candidates?.[0];
  for (const part of candidate?.content?.parts ?? []) {
    result.text += part.text ?? '';
    if (part.functionCall) result.tool = { name: part.functionCall.name, arguments: part.functionCall.args };
  }
  result.finish = candidate?.finishReason ?? result.finish;
  const usage = chunk.usageMetadata;
  if (usage) result.usage = { input: usage.promptTokenCount, output: usage.candidatesTokenCount };
}

export const calls = {
  async generate(command, result) {
    take(await client(command).models.generateContent({ model: command.model, contents }), result);
  },

  async 'generate-stream'(command, result) {
    const stream = await client(command).models.generateContentStream({ model: command.model, contents });
    for await (const chunk of stream) take(chunk, result);
  },
};
