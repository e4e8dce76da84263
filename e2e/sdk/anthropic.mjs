// The @anthropic-ai/sdk package: messages, tool use and count_tokens.

import Anthropic from '@anthropic-ai/sdk';

const messages = [{ role: 'user', content: 'Say when the tide turns.' }];

const tools = [
  {
    name: 'get_weather',
    description: 'The weather in a place.',
    input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
];

function client({ baseURL, patience }) {
  return new Anthropic({ apiKey: 'sk-client', authToken: null, baseURL, maxRetries: 0, timeout: patience, logLevel: 'off' });
}

function take(message, result) {
  const call = message.content.find((block) => block.type === 'tool_use');
  result.finish = message.stop_reason;
  result.tool = call ? { name: call.name, arguments: call.input } : null;
  result.usage = { input: message.usage.input_tokens, output: message.usage.output_tokens };
}

function text(message) {
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

export const calls = {
  async messages(command, result) {
    const message = await client(command).messages.create({ model: command.model, max_tokens: 100, messages });
    result.text = text(message);
    take(message, result);
  },

  // The accumulating helper.
  async 'messages-stream'(command, result) {
    const stream = client(command).messages.stream({ model: command.model, max_tokens: 100, messages });
    stream.on('text', (delta) => (result.text += delta));
    take(await stream.finalMessage(), result);
  },

  // The bare events.
  async 'messages-events'(command, result) {
    const stream = await client(command).messages.create({ model: command.model, max_tokens: 100, messages, stream: true });
    for await (const event of stream) {
      if (event.type === 'message_start') result.usage = { input: event.message.usage.input_tokens, output: 0 };
      if (event.type === 'content_block_delta') result.text += event.delta.text ?? '';
      if (event.type === 'message_delta') {
        result.finish = event.delta.stop_reason;
        result.usage.output = event.usage.output_tokens;
      }
    }
  },

  async 'tool-stream'(command, result) {
    const stream = client(command).messages.stream({ model: command.model, max_tokens: 100, messages, tools });
    stream.on('text', (delta) => (result.text += delta));
    take(await stream.finalMessage(), result);
  },

  async 'count-tokens'(command, result) {
    const count = await client(command).messages.countTokens({ model: command.model, messages });
    result.usage = { input: count.input_tokens, output: 0 };
  },
};
