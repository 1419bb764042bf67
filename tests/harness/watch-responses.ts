// Loaded into the server process of a test (`--import`). Checks every response against the OpenAPI document, and writes
// a line to the file in `?into=` for each response that does not match. Responses are not changed.
import { appendFileSync } from 'node:fs';
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  Server,
  ServerResponse,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { isMainThread } from 'node:worker_threads';
import type { ObservedResponse, ResponseValidator } from './described-responses.ts';

const BODY_BYTES_MAX = 4 * 1024 ** 2;
const OPERATOR_HEADER = 'berth-operator';
const UPGRADED_PATH = /\/connect\/?$/;

const outputFile = new URL(import.meta.url).searchParams.get('into');
let validatorPromise: Promise<ResponseValidator> | undefined;

/** Loaded at the first response, so that the start of the server is not delayed. */
function loadValidator(): Promise<ResponseValidator> {
  validatorPromise ??= import('./described-responses.ts').then(({ ResponseValidator }) => new ResponseValidator());
  return validatorPromise;
}

function check(response: ObservedResponse): void {
  if (outputFile === null || !response.url.startsWith('/')) return; // proxies receive absolute URLs
  void loadValidator()
    .then(validator => validator.describeMismatch(response))
    .catch(error => `${response.method} ${response.url} could not be judged: ${error}`)
    .then(complaint => complaint !== undefined && appendFileSync(outputFile, `${complaint}\n`));
}

// ---- responses -----------------------------------------------------------------------------------------------------

interface KeptResponse {
  headers: Record<string, string>;
  isJson: boolean;
  readonly chunks: Buffer[];
  bytes: number;
}
const keptResponses = new WeakMap<ServerResponse, KeptResponse>();

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[] | undefined;

function keepHeaders(response: ServerResponse, extraHeaders: Headers): void {
  const namedHeaders = Array.isArray(extraHeaders) || extraHeaders === undefined ? {} : extraHeaders;
  const all = Object.entries({ ...response.getHeaders(), ...namedHeaders });
  const headers = Object.fromEntries(
    all.flatMap(([name, value]) => (value === undefined ? [] : [[name.toLowerCase(), String(value)]])),
  );
  const isJson = /^application\/([\w.-]+\+)?json/.test(headers['content-type'] ?? '');
  keptResponses.set(response, { headers, isJson, chunks: [], bytes: 0 });
}

function keepChunk(response: ServerResponse, chunk: unknown, encoding: unknown): void {
  const keptResponse = keptResponses.get(response);
  if (!keptResponse?.isJson || keptResponse.bytes > BODY_BYTES_MAX) return;
  const bytes = bytesOf(chunk, encoding);
  if (!bytes) return;
  keptResponse.bytes += bytes.length;
  if (keptResponse.bytes <= BODY_BYTES_MAX) keptResponse.chunks.push(bytes);
}

function bytesOf(chunk: unknown, encoding: unknown): Buffer | undefined {
  if (typeof chunk === 'string') return Buffer.from(chunk, encoding === 'latin1' ? 'latin1' : 'utf8');
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : undefined;
}

function checkResponse(response: ServerResponse): void {
  const keptResponse = keptResponses.get(response);
  const { method = '', url = '' } = response.req;
  if (!keptResponse) return;
  keptResponses.delete(response);
  if (keptResponse.headers.server === OPERATOR_HEADER) return; // the operator's listener is not part of the API
  const isWhole = keptResponse.isJson && keptResponse.bytes <= BODY_BYTES_MAX;
  check({
    ...{ method, url, status: response.statusCode, headers: keptResponse.headers },
    ...(isWhole ? { body: Buffer.concat(keptResponse.chunks).toString('utf8') } : {}),
  });
}

// ---- upgrades, whose responses are written to the socket ------------------------------------------------------------

function watchUpgrade(request: IncomingMessage, socket: Duplex): void {
  const { method = '', url = '' } = request;
  if (!UPGRADED_PATH.test(url.split('?', 1)[0] ?? '')) return;
  const checkFirstChunk = (chunk: unknown): void => {
    Object.assign(socket, { write, end });
    const text = bytesOf(chunk, 'latin1')?.toString('latin1') ?? '';
    const [head = '', body = ''] = text.split('\r\n\r\n', 2);
    const [line = '', ...lines] = head.split('\r\n');
    const headers = Object.fromEntries(
      lines.map(one => [one.slice(0, one.indexOf(':')).toLowerCase(), one.slice(one.indexOf(':') + 1).trim()]),
    );
    const status = Number(line.split(' ')[1]);
    if (status === 101) return; // its headers belong to the WebSocket protocol
    check({ method, url, status, headers, ...(headers['content-type'] ? { body } : {}) });
  };
  const { write, end } = socket;
  const withCheck = (method: (...args: never[]) => unknown) =>
    function (this: Duplex, ...args: unknown[]): unknown {
      checkFirstChunk(args[0]);
      return Reflect.apply(method, this, args);
    };
  Object.assign(socket, { write: withCheck(write), end: withCheck(end) });
}

// ---- watching ------------------------------------------------------------------------------------------------------

function watchResponses(): void {
  const { writeHead, write, end } = ServerResponse.prototype;
  const { emit } = Server.prototype;
  Object.assign(ServerResponse.prototype, {
    writeHead(this: ServerResponse, ...args: unknown[]): unknown {
      const extraHeaders = args.find((one, index) => index > 0 && typeof one === 'object') as Headers;
      if (Number(args[0]) >= 200) keepHeaders(this, extraHeaders);
      return Reflect.apply(writeHead, this, args);
    },
    write(this: ServerResponse, ...args: unknown[]): unknown {
      const result = Reflect.apply(write, this, args); // the first write sends the headers
      keepChunk(this, args[0], args[1]);
      return result;
    },
    end(this: ServerResponse, ...args: unknown[]): unknown {
      const result = Reflect.apply(end, this, args);
      keepChunk(this, args[0], args[1]);
      checkResponse(this);
      return result;
    },
  });
  Object.assign(Server.prototype, {
    emit(this: Server, ...args: unknown[]): unknown {
      const [event, request, socket] = args;
      if (event === 'upgrade') watchUpgrade(request as IncomingMessage, socket as Duplex);
      return Reflect.apply(emit, this, args);
    },
  });
}

if (isMainThread) watchResponses();
