// The openai package: chat, responses, files and transcription.

import OpenAI, { toFile } from 'openai';

const prompt = 'Say when the tide turns.';

const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather in a place.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

function client({ baseURL, patience }) {
  return new OpenAI({ apiKey: 'sk-client', baseURL: `${baseURL}/v1`, maxRetries: 0, timeout: patience, logLevel: 'off' });
}

function chatUsage(usage) {
  return usage && { input: usage.prompt_tokens, output: usage.completion_tokens };
}

function responsesUsage(usage) {
  return usage && { input: usage.input_tokens, output: usage.output_tokens };
}

export const calls = {
  async chat(command, result) {
    const answer = await client(command).chat.completions.create({
      model: command.model,
      messages: [{ role: 'user', content: prompt }],
    });
    result.text = answer.choices[0].message.content;
    result.finish = answer.choices[0].finish_reason;
    result.usage = chatUsage(answer.usage);
  },

  async 'chat-stream'(command, result) {
    const stream = await client(command).chat.completions.create({
      model: command.model,
      messages: [{ role: 'user', content: prompt }],
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      const choice = chunk.choices[0];
      result.text += choice?.delta?.content ?? '';
      result.finish = choice?.finish_reason ?? result.finish;
      result.usage = chatUsage(chunk.usage) ?? result.usage;
    }
  },

  // The accumulating helper, which also puts a tool call together from its pieces.
  async 'chat-tool-stream'(command, result) {
    const stream = client(command).chat.completions.stream({
      model: command.model,
      messages: [{ role: 'user', content: prompt }],
      tools: [{ type: 'function', function: { name: weather.name, description: weather.description, parameters: weather.parameters } }],
    });
    stream.on('content', (delta) => (result.text += delta));
    const answer = await stream.finalChatCompletion();
    const call = answer.choices[0].message.tool_calls?.[0];
    result.finish = answer.choices[0].finish_reason;
    result.tool = call && { name: call.function.name, arguments: JSON.parse(call.function.arguments) };
    result.usage = chatUsage(answer.usage);
  },

  async responses(command, result) {
    const answer = await client(command).responses.create({ model: command.model, input: prompt, store: false });
    result.text = answer.output_text;
    result.finish = answer.status;
    result.usage = responsesUsage(answer.usage);
  },

  // The SDK hands the vendor's own failure events over as events; who reads them has to look.
  async 'responses-stream'(command, result) {
    const stream = await client(command).responses.create({ model: command.model, input: prompt, store: false, stream: true });
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') result.text += event.delta;
      if (event.type === 'error') throw Object.assign(new Error(event.message), { name: 'error event' });
      if (event.type === 'response.failed') throw Object.assign(new Error(event.response.error.message), { name: event.type });
      if (event.type === 'response.completed') {
        result.finish = event.response.status;
        result.usage = responsesUsage(event.response.usage);
      }
    }
  },

  // multipart/form-data with a model among its parts.
  async transcription(command, result) {
    const answer = await client(command).audio.transcriptions.create({
      model: command.model,
      file: await toFile(Buffer.alloc(300_000, 'RIFF\r\n--'), 'tide.wav', { type: 'audio/wav' }),
    });
    result.text = answer.text;
  },

  // multipart/form-data without a model: it goes where server.default_model says.
  async file(command, result) {
    const answer = await client(command).files.create({
      file: await toFile(Buffer.alloc(300_000, '{"tide":"turns"}\n'), 'tide.jsonl', { type: 'application/jsonl' }),
      purpose: 'user_data',
    });
    result.text = answer.id;
  },

  async models(command, result) {
    for await (const model of client(command).models.list()) result.text += `${model.id}\n`;
  },
};
