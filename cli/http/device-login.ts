// Device authorization (RFC 8628) as its client: asks for a code, has it shown, and polls until a person has decided.
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, type TSchema, Type } from 'typebox';
import { Check } from 'typebox/value';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';

const CLIENT_ID = 'berth-cli';
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';
const DEVICE_NAME_CHARACTERS_MAX = 64;
/** RFC 8628, 3.2 and 3.5. */
const INTERVAL_SECONDS = 5;
const SLOWER_BY_SECONDS = 5;
const SECOND_MS = 1_000;
const REQUEST_MS = 30_000;

const Started = Type.Object({
  device_code: Type.String(),
  user_code: Type.String(),
  verification_uri: Type.String(),
  verification_uri_complete: Type.Optional(Type.String()),
  expires_in: Type.Number(),
  interval: Type.Optional(Type.Number()),
});
export type Started = Static<typeof Started>;

const Granted = Type.Object({
  access_token: Type.String(),
  expires_in: Type.Number(),
  scope: Type.String(),
  token_id: Type.String(),
  application_ids: Type.Array(Type.String()),
});
export type Granted = Static<typeof Granted>;

const Refused = Type.Object({ error: Type.String(), error_description: Type.Optional(Type.String()) });

/** Resolves with the token once a person has approved. `show` gets what the person has to see. */
export async function deviceLogin(
  server: string,
  { scopes, deviceName }: { scopes: readonly string[]; deviceName: string },
  show: (started: Started) => void,
): Promise<Granted> {
  const verifier = randomBytes(32).toString('base64url');
  const started = await start(server, {
    client_id: CLIENT_ID,
    scope: scopes.join(' '),
    device_name: deviceName.slice(0, DEVICE_NAME_CHARACTERS_MAX),
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  show(started);
  return poll(server, started, verifier);
}

async function start(server: string, body: Readonly<Record<string, string>>): Promise<Started> {
  const { status, answer } = await post(server, '/v1/device/authorizations', body);
  if (status < 300) return expected(Started, answer);
  if (status === 404)
    throw new CommandFailed(
      EXIT.failed,
      `${server} has no device authorization. Pass a token: \`berth login --token-stdin\`.`,
    );
  throw refusal(server, status, answer);
}

async function poll(server: string, started: Started, verifier: string): Promise<Granted> {
  const deadline = Date.now() + started.expires_in * SECOND_MS;
  let seconds = started.interval ?? INTERVAL_SECONDS;
  while (Date.now() < deadline) {
    await sleep(seconds * SECOND_MS);
    const { status, answer } = await post(server, '/v1/device/tokens', {
      grant_type: GRANT_TYPE,
      device_code: started.device_code,
      client_id: CLIENT_ID,
      code_verifier: verifier,
    });
    if (status === 200) return expected(Granted, answer);
    const error = Check(Refused, answer) ? answer.error : undefined;
    if (error === 'slow_down' || status === 429) seconds += SLOWER_BY_SECONDS;
    else if (error !== 'authorization_pending') throw refusal(server, status, answer);
  }
  throw new CommandFailed(EXIT.denied, 'Nobody approved in time. Run `berth login` again.');
}

function refusal(server: string, status: number, answer: unknown): CommandFailed {
  if (!Check(Refused, answer)) return new CommandFailed(EXIT.failed, `${server} answered ${status} to the login.`);
  if (answer.error === 'access_denied') return new CommandFailed(EXIT.denied, 'The login was denied.');
  if (answer.error === 'expired_token')
    return new CommandFailed(EXIT.denied, 'Nobody approved in time. Run `berth login` again.');
  return new CommandFailed(EXIT.denied, `The login failed: ${answer.error_description ?? answer.error}`);
}

async function post(
  server: string,
  path: string,
  body: Readonly<Record<string, string>>,
): Promise<{ status: number; answer: unknown }> {
  try {
    const response = await fetch(`${server}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    return { status: response.status, answer: await response.json().catch(() => undefined) };
  } catch (error) {
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    throw new CommandFailed(EXIT.unreachable, `${server} does not answer: ${reason}`);
  }
}

function expected<Schema extends TSchema>(schema: Schema, answer: unknown): Static<Schema> {
  if (Check(schema, answer)) return answer;
  throw new CommandFailed(EXIT.failed, 'The answer to the login is not as RFC 8628 describes it.');
}
