// Drives the vendors' own SDKs on behalf of e2e_test.go.
//
// One JSON command per line on stdin:
//
//   {"id":1,"call":"openai/chat-stream","baseURL":"http://127.0.0.1:4000","model":"m"}
//
// One JSON result per line on stdout, in the order in which the calls end:
//
//   {"id":1,"ok":true,"text":"…","finish":"stop","tool":{"name","arguments"},"usage":{"input","output"},
//    "error":{"name","message","status","cause"},"http":[{"status","candidate","attempts"}],"ms":12}
//
// `ok` means that the SDK gave back its answer without raising. `text` is what it had handed over by then, so it is
// set after an error too. `http` has one entry for each HTTP request that the SDK made: more than one would be a
// retry of the SDK's own. Calls run side by side; the process ends with stdin.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createInterface } from 'node:readline';

// The protocol owns stdout; SDKs that print (ollama does, for a status it dislikes) print to stderr.
console.log = console.info = console.debug = (...words) => console.error(...words);

// Every SDK calls the global fetch. This one notes what came back for the call that is running, and changes nothing.
const running = new AsyncLocalStorage();
const plainFetch = globalThis.fetch;
globalThis.fetch = async (...args) => {
  // openai tries a data: URL first to learn what this fetch can do; that is no request.
  if (!String(args[0]?.url ?? args[0]).startsWith('http')) return plainFetch(...args);
  const seen = { status: 0, candidate: null, attempts: null };
  running.getStore()?.push(seen);
  const response = await plainFetch(...args);
  seen.status = response.status;
  seen.candidate = response.headers.get('x-understudy-candidate');
  seen.attempts = response.headers.get('x-understudy-attempts');
  return response;
};

// Some SDKs reject promises that nobody asked for when a stream breaks; the error that counts is the one raised.
process.on('unhandledRejection', (reason) => console.error('unhandled rejection:', String(reason)));

// Imported only now, so that they find the fetch above.
const sdks = Object.fromEntries(
  await Promise.all(
    ['openai', 'anthropic', 'genai', 'ollama', 'ai'].map(async (name) => [name, (await import(`./sdk/${name}.mjs`)).calls]),
  ),
);

// Longest a call may take, in ms. Every clock of the proxy under test is far shorter, so nothing but a hang ends here.
const patience = 30_000;

async function run(command) {
  const [sdk, name] = command.call.split('/');
  const call = sdks[sdk]?.[name];
  if (!call) throw new Error(`no such call: ${command.call}`);
  const result = { id: command.id, ok: false, text: '', finish: null, tool: null, usage: null, error: null, http: [] };
  const began = performance.now();
  let timer;
  const hung = new Promise((_, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error('the SDK neither returned nor raised'), { name: 'Hung' })), patience);
  });
  try {
    await running.run(result.http, () => Promise.race([call({ ...command, patience }, result), hung]));
    result.ok = true;
  } catch (error) {
    result.error = describe(error);
  } finally {
    clearTimeout(timer);
  }
  result.ms = Math.round(performance.now() - began); // for people who run a call by hand
  return result;
}

function describe(error) {
  const status = error?.status ?? error?.statusCode ?? error?.status_code;
  return {
    name: error?.name ?? typeof error,
    message: String(error?.message ?? JSON.stringify(error)).slice(0, 2000),
    status: typeof status === 'number' ? status : 0,
    cause: error?.cause ? String(error.cause.code ?? error.cause.message ?? error.cause) : '',
  };
}

console.error('ready', process.version);
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  run(command)
    .catch((error) => ({ id: command.id, ok: false, error: describe(error), http: [], ms: 0 }))
    .then((result) => process.stdout.write(JSON.stringify(result) + '\n'));
}
