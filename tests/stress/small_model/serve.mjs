// Serve a GGUF model by OpenAI's chat completions on 127.0.0.1, one answer after the other:
//   node serve.mjs FOLDER        (which holds model.gguf and node_modules)
// Prints the port. Ends with standard input, so that it never outlives the test that started it.
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const library = pathToFileURL(join(folder, "node_modules/node-llama-cpp/dist/index.js"));
const { getLlama, LlamaCompletion, LlamaLogLevel } = await import(library);

const CONTEXT_TOKENS = 16384;
const MAX_ANSWER_TOKENS = 768;
// A model this small repeats itself without end where the schema sets no limit, and would never close its JSON.
const MAX_ITEMS = 5;
const MAX_CHARACTERS = 60;

const llama = await getLlama({ build: "never", gpu: false, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: join(folder, "model.gguf") });
// One thread: several wait for each other in a loop, a hundred times slower where other programs need the processor.
// The whole window's cache is kept: questions about one document begin with the same text, which is then read once.
const context = await model.createContext({ contextSize: CONTEXT_TOKENS, swaFullCache: true, threads: 1 });
const completion = new LlamaCompletion({ contextSequence: context.getSequence() });

// JSON Schema as the library's grammar takes it: alternatives are `oneOf`, and everything has an end.
function bound(schema) {
  if (schema.anyOf) return { oneOf: schema.anyOf.map(bound) };
  if (schema.enum || "const" in schema) return schema;
  if (schema.type === "object")
    return {
      type: "object",
      properties: Object.fromEntries(Object.entries(schema.properties ?? {}).map(([key, value]) => [key, bound(value)])),
    };
  if (schema.type === "array")
    return { type: "array", items: bound(schema.items), maxItems: schema.maxItems ?? MAX_ITEMS, minItems: schema.minItems ?? 0 };
  return schema.type === "string" ? { type: "string", maxLength: MAX_CHARACTERS } : { type: schema.type };
}

const grammars = new Map();
async function getGrammar(format) {
  if (format?.type !== "json_schema") return format && llama.getGrammarFor("json");
  const schema = JSON.stringify(bound(format.json_schema.schema));
  if (!grammars.has(schema)) grammars.set(schema, await llama.createGrammarForJsonSchema(JSON.parse(schema)));
  return grammars.get(schema);
}

function tokenize(messages) {
  const turns = messages.flatMap(({ role, content }) => [
    ...model.tokenize(`<start_of_turn>${role === "assistant" ? "model" : "user"}\n`, true),
    ...model.tokenize(typeof content === "string" ? content : content.map((part) => part.text ?? "").join("\n")),
    ...model.tokenize("<end_of_turn>\n", true),
  ]);
  return [model.tokens.bos, ...turns, ...model.tokenize("<start_of_turn>model\n", true)];
}

async function answer(body, signal) {
  const tokens = tokenize(body.messages);
  if (tokens.length + MAX_ANSWER_TOKENS > CONTEXT_TOKENS)
    return [400, { error: { code: "context_length_exceeded", message: `${tokens.length} tokens are too many` } }];
  const grammar = await getGrammar(body.response_format);
  const maxTokens = Math.min(body.max_completion_tokens ?? body.max_tokens ?? MAX_ANSWER_TOKENS, MAX_ANSWER_TOKENS);
  const { response, metadata } = await completion.generateCompletionWithMeta(tokens, {
    grammar, maxTokens, signal, temperature: body.temperature ?? 0, seed: 0, stopOnAbortSignal: true,
  });
  const answerTokens = model.tokenize(response).length;
  return [200, {
    id: "chatcmpl-1", object: "chat.completion", created: 1, model: body.model,
    choices: [{
      index: 0, message: { role: "assistant", content: response },
      finish_reason: metadata.stopReason === "maxTokens" ? "length" : "stop",
    }],
    usage: { prompt_tokens: tokens.length, completion_tokens: answerTokens, total_tokens: tokens.length + answerTokens },
  }];
}

let queue = Promise.resolve();
const server = createServer((request, reply) => {
  const chunks = [];
  const gone = new AbortController();
  reply.on("close", () => gone.abort());
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    queue = queue.then(async () => {
      if (gone.signal.aborted) return;
      const [status, body] =
        request.url === "/v1/chat/completions"
          ? await answer(JSON.parse(Buffer.concat(chunks)), gone.signal).catch((error) => [500, { error: { message: String(error) } }])
          : [404, { error: { message: "no such path" } }];
      reply.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    });
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
