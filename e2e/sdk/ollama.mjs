// The ollama package: chat and generate, NDJSON streams and whole answers.

import { Ollama } from 'ollama';

const prompt = 'Say when the tide turns.';
const messages = [{ role: 'user', content: prompt }];

function client({ baseURL }) {
  return new Ollama({ host: baseURL });
}

function take(part, result) {
  result.text += part.message?.content ?? part.response ?? '';
  if (part.done) {
    result.finish = part.done_reason;
    result.usage = { input: part.prompt_eval_count, output: part.eval_count };
  }
}

export const calls = {
  async chat(command, result) {
    take(await client(command).chat({ model: command.model, messages }), result);
  },

  async 'chat-stream'(command, result) {
    for await (const part of await client(command).chat({ model: command.model, messages, stream: true })) take(part, result);
  },

  async 'generate-stream'(command, result) {
    for await (const part of await client(command).generate({ model: command.model, prompt, stream: true })) take(part, result);
  },
};
