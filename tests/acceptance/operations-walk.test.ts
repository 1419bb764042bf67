// Sends each field of every operation with every kind of invalid value, and expects a refusal that names the field and
// has no effect. (The harness checks that each response is documented.)
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TSchema, Type } from 'typebox';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { StartedDevice } from '../../contract/device.ts';
import { propertiesOf } from '../../contract/openapi.ts';
import type { Operation } from '../../contract/operation.ts';
import { OPERATION_IDS, type OperationId, operation, pathsOf } from '../../contract/operations.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import type { HttpResult } from '../harness/http.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { collectInvalidValues, isValid, validValueOf } from '../harness/wrong-values.ts';

const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const JSON_HEADERS = { 'content-type': 'application/json' };

const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE } });
const token = await createOwnerToken(server);
const { key: agentKey } = await issueAgentKey(server, { scopes: [...AGENT_KEY_SCOPES] });
/** Well-formed, but not the token of any lease. */
const leaseToken = 'bhl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA4hZsxK';
const person = await Person.setUpOwner(server);
const lab = await ConsumerFixture.open(server, person);
const consumer = await lab.signIn('kim@example.com');
const deviceResponse = await server.api<StartedDevice>('POST', '/v1/device/authorizations', {
  key: null,
  body: { client_id: 'walk' },
});

interface RequestParts {
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

function keyFor({ credential, ownPageOnly }: Operation): string | null {
  if (credential === 'consumer') return consumer.accessToken;
  if (credential === 'human' || credential === 'handoffClaimer' || ownPageOnly) return null;
  if (credential === 'handoffLease') return leaseToken;
  if (credential === 'deviceCode') return deviceResponse.body.device_code;
  return credential === 'account' ? token : agentKey;
}

/** Sends a request to the native path of the operation, or to its only path, with ids that do not exist. */
function send(
  id: OperationId,
  { path = pathOf(id), query, headers = {}, body }: RequestParts,
): Promise<HttpResult<ErrorBody>> {
  const { method, credential, ownPageOnly } = operation(id);
  return server.api(method, query === undefined ? path : `${path}?${query}`, {
    key: keyFor(operation(id)),
    headers: {
      ...(body === undefined ? {} : JSON_HEADERS),
      ...(credential === 'human' || credential === 'handoffClaimer' || ownPageOnly ? person.headers : {}),
      ...headers,
    },
    body,
  });
}

const KNOWN_IDS: Readonly<Record<string, string>> = {
  appId: server.applicationId,
  providerId: 'hosted',
  pageId: '0',
};

const pathOf = (id: OperationId, names: Readonly<Record<string, string>> = {}): string =>
  (pathsOf(id, true)[0]?.path ?? '').replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => names[name] ?? KNOWN_IDS[name] ?? UNKNOWN_ID,
  );

/** Returns a line for each unexpected response. */
async function complaintsOf(
  cases: ReadonlyArray<
    readonly [what: string, sent: Promise<HttpResult<ErrorBody>>, ok: (result: HttpResult<ErrorBody>) => boolean]
  >,
): Promise<string[]> {
  const lines: string[] = [];
  for (const [what, sent, isRight] of cases) {
    const result = await sent;
    if (!isRight(result)) lines.push(`${what}: ${result.status} ${result.text.slice(0, 300)}`);
  }
  return lines;
}

/**
 * Returns a function that checks that the request was refused with a message that names the field, or the object that
 * contains the field.
 */
const namesField =
  (path: string, code = 'invalid_request') =>
  ({ status, body }: HttpResult<ErrorBody>): boolean => {
    const issues: ReadonlyArray<{ path: string; message: string }> = Object(body.details).issues ?? [];
    const field = issues.find(
      issue => path === issue.path || path.startsWith(issue.path) || issue.path.startsWith(path),
    );
    return status === 400 && body.code === code && field !== undefined && field.message.length > 0;
  };

const is =
  (status: number, ...codes: readonly string[]) =>
  (result: HttpResult<ErrorBody>): boolean =>
    result.status === status && codes.includes(result.body.code);

const CHECKS_AT_ONCE = 8;

/** Runs a few checks at a time, because there are hundreds of checks. */
async function runChecks<T>(items: readonly T[], work: (item: T) => Promise<string[]>): Promise<string[]> {
  const queue = [...items];
  const lines: string[] = [];
  const next = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) lines.push(...(await work(item)));
  };
  await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, next));
  return lines;
}

const bodyOf = (id: OperationId): TSchema | undefined => operation(id).body;

for (const id of OPERATION_IDS.filter(one => bodyOf(one) !== undefined)) {
  const schema = bodyOf(id) ?? assert.fail(id);
  const { unknownFields = 'ignore' } = operation(id);

  test(`${id}: refuses each invalid body field`, async () => {
    const all = collectInvalidValues(schema);
    // Official clients send additional fields, which these operations ignore. A request with such a field would
    // succeed.
    const wrongValues = unknownFields === 'ignore' ? all.filter(({ isExtra }) => !isExtra) : all;
    assert.ok(wrongValues.length > 0 || Object.keys(propertiesOf(schema)).length === 0);
    const lines = await runChecks(wrongValues, ({ path, errorKind: how, value, isExtra }) => {
      const headers = isExtra && unknownFields === 'warn' ? { prefer: 'handling=strict' } : {};
      const sent = send(id, { body: JSON.stringify(value), headers: { 'if-match': '*', ...headers } });
      return complaintsOf([[`${path} ${how}`, sent, namesField(path, isExtra ? 'unknown_field' : 'invalid_request')]]);
    });
    assert.deepEqual(lines, []);
  });

  test(`${id}: refuses a body that is not an object or not JSON`, async () => {
    const lines = await runChecks(['[]', '"text"', '7', 'null', '{', '{"a":1,}', '\u0000'], body =>
      complaintsOf([[body, send(id, { body }), is(400, 'invalid_request')]]),
    );
    const formBody = { body: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    lines.push(
      ...(await complaintsOf([
        [
          'a form',
          send(id, formBody),
          operation(id).oauth ? is(400, 'invalid_request') : is(415, 'unsupported_media_type'),
        ],
      ])),
    );
    assert.deepEqual(lines, []);
  });
}

for (const id of OPERATION_IDS.filter(one => operation(one).query !== undefined))
  test(`${id}: refuses each invalid query parameter`, async () => {
    const schema = operation(id).query ?? assert.fail(id);
    const validPairs = Object.entries(Object(validValueOf(schema))).map(([name, value]) => `${name}=${value}`);
    const queries = collectInvalidValues(schema).flatMap(({ path, errorKind: how, value }) => {
      const fieldValue: unknown = Object(value)[path];
      if (how === 'missing')
        return [[path, how, validPairs.filter(one => !one.startsWith(`${path}=`)).join('&')] as const];
      const isText = typeof fieldValue === 'string' || typeof fieldValue === 'number';
      const isInvalidText = isText && !isValidText(schema, path, String(fieldValue));
      if (!isInvalidText) return [];
      const otherPairs = validPairs.filter(one => !one.startsWith(`${path}=`));
      return [[path, how, [...otherPairs, `${path}=${encodeURIComponent(String(fieldValue))}`].join('&')] as const];
    });
    const lines = await runChecks(queries, ([path, how, query]) =>
      complaintsOf([[`${path} ${how}`, send(id, { query }), namesField(path)]]),
    );
    for (const name of Object.keys(propertiesOf(schema))) {
      const query = [...validPairs, `${name}=1`, `${name}=1`].join('&');
      lines.push(...(await complaintsOf([[`${name} twice`, send(id, { query }), namesField(name)]])));
    }
    assert.deepEqual(lines, []);
  });

/**
 * Whether the string is a valid value of this parameter. Only values of integer parameters are converted to numbers.
 */
function isValidText(schema: TSchema, name: string, text: string): boolean {
  const property = propertiesOf(schema)[name];
  const propertyType: unknown = property && 'type' in property ? property.type : undefined;
  const value = propertyType === 'integer' && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  return !isInvalidValue(schema, name, value);
}

const isInvalidValue = (schema: TSchema, name: string, value: unknown): boolean =>
  !isValid(schema, { ...Object(validValueOf(schema)), [name]: value });

for (const id of OPERATION_IDS.filter(one => operation(one).tag !== 'Service' && operation(one).mount !== 'compat'))
  test(`${id}: refuses an unknown query parameter`, async () => {
    const validPairs = Object.entries(Object(validValueOf(operation(id).query ?? Type.Object({})))).map(
      ([name, value]) => `${name}=${value}`,
    );
    const result = await send(id, { query: [...validPairs, 'noSuchParameter=1'].join('&') });
    assert.deepEqual([result.status, result.body.code], [400, 'invalid_query'], result.text);
    assert.match(result.body.message, /noSuchParameter/);
  });

for (const id of OPERATION_IDS.filter(one => operation(one).params !== undefined && one !== 'readLinkedFile'))
  test(`${id}: refuses invalid ids in the path`, async () => {
    const params = propertiesOf(operation(id).params ?? assert.fail(id));
    const lines = await runChecks(Object.entries(params), ([name, property]) =>
      complaintsOf(
        ['x', `${UNKNOWN_ID}0`, UNKNOWN_ID.slice(1), '..%2f..', '%00', 'x'.repeat(3000)].map(bad => [
          `${name} ${bad.slice(0, 60)}`,
          send(id, { path: pathOf(id, { [name]: bad }), ...validRequest(id) }),
          'format' in property
            ? is(404, 'not_found')
            : result => is(400, 'invalid_request')(result) || is(404, 'not_found')(result),
        ]),
      ),
    );
    assert.deepEqual(lines, []);
  });

const validRequest = (id: OperationId): RequestParts => {
  const schema = bodyOf(id);
  return schema ? { body: JSON.stringify(validValueOf(schema)), headers: { 'if-match': '*' } } : {};
};

for (const id of OPERATION_IDS.filter(one => operation(one).upload !== undefined))
  test(`${id}: refuses a body that is not a valid file upload`, async () => {
    const form = (...parts: ReadonlyArray<readonly [name: string, file?: string]>): RequestParts => ({
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: `${parts.map(([name, file]) => `--x\r\ncontent-disposition: form-data; name="${name}"${file === undefined ? '' : `; filename="${file}"`}\r\n\r\nx\r\n`).join('')}--x--\r\n`,
    });
    const wrongBodies: ReadonlyArray<readonly [string, RequestParts, number, readonly string[]]> = [
      ['JSON', { body: '{}' }, 415, ['unsupported_media_type']],
      ['nothing', {}, 415, ['unsupported_media_type']],
      ['no part', form(), 400, ['missing_file', 'invalid_file']],
      ['another name', form(['other', 'a.txt']), 400, ['missing_file']],
      ['no file name', form(['file']), 400, ['missing_file']],
      ['two files', form(['file', 'a'], ['file', 'b']), 400, ['invalid_file', 'missing_file']],
      [
        'a truncated form',
        { ...form(['file', 'a']), body: '--x\r\ncontent-disp' },
        400,
        ['invalid_file', 'missing_file'],
      ],
      [
        'no boundary',
        { headers: { 'content-type': 'multipart/form-data' }, body: 'x' },
        400,
        ['invalid_file', 'invalid_request'],
      ],
    ];
    const path = pathOf(id, { id: await uploadTargetId(id) });
    const lines = await runChecks(wrongBodies, ([what, sent, status, codes]) =>
      complaintsOf([[what, send(id, { ...sent, path }), is(status, ...codes)]]),
    );
    assert.deepEqual(lines, []);
  });

let sessionIdPromise: Promise<string> | undefined;
/** Returns the id for the path of an upload. Uploads to a session are checked only if the session is running. */
function uploadTargetId(id: OperationId): Promise<string> {
  if (!pathOf(id).includes('/sessions/')) return Promise.resolve(UNKNOWN_ID);
  sessionIdPromise ??= server.createSession({ keepAlive: true }).then(session => session.id);
  return sessionIdPromise;
}

test('the invalid requests in this test file create no sessions, contexts or certificates', async () => {
  if (sessionIdPromise) await server.release(await sessionIdPromise);
  const sessionsResponse = await server.api<Array<{ id: string }>>('GET', '/v1/browsers/sessions');
  assert.deepEqual(
    sessionsResponse.body.map(({ id }) => id),
    sessionIdPromise ? [await sessionIdPromise] : [],
  );
  for (const path of ['contexts', 'certificates'])
    assert.deepEqual((await server.api('GET', `/v1/browsers/${path}`)).body, [], path);
  await server.waitUntilSettled();
});
