// The ai package (Vercel's AI SDK) with its OpenAI provider: chat and responses.

import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText } from 'ai';

const prompt = 'Say when the tide turns.';

function provider({ baseURL }) {
  return createOpenAI({ apiKey: 'sk-client', baseURL: `${baseURL}/v1` });
}

function options({ patience }) {
  return { prompt, maxRetries: 0, abortSignal: AbortSignal.timeout(patience) };
}

async function whole(command, result, model) {
  const answer = await generateText({ ...options(command), model });
  result.text = answer.text;
  result.finish = answer.finishReason;
  result.usage = { input: answer.usage.inputTokens, output: answer.usage.outputTokens };
}

// streamText reports an error as a part of its stream instead of raising it; its users look at the part, or at onError.
async function streamed(command, result, model) {
  const answer = streamText({ ...options(command), model, onError() {} });
  for await (const part of answer.fullStream) {
    if (part.type === 'text-delta') result.text += part.text;
    if (part.type === 'error') throw part.error;
    if (part.type === 'finish') {
      result.finish = part.finishReason;
      result.usage = { input: part.totalUsage.inputTokens, output: part.totalUsage.outputTokens };
    }
  }
}

export const calls = {
  chat: (command, result) => whole(command, result, provider(command).chat(command.model)),
  'chat-stream': (command, result) => streamed(command, result, provider(command).chat(command.model)),
  responses: (command, result) => whole(command, result, provider(command).responses(command.model)),
  'responses-stream': (command, result) => streamed(command, result, provider(command).responses(command.model)),
};
