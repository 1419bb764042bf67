// The client side of device authorization (RFC 8628): requests a code, shows it to the user, and polls until a person
// has decided.
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Berth, BerthError, dataOf, type paths } from '../../sdk/index.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';

export type StartedLogin = paths['/v1/device/authorizations']['post']['responses'][201]['content']['application/json'];
export type GrantedToken = paths['/v1/device/tokens']['post']['responses'][200]['content']['application/json'];

const CLIENT_ID = 'berth-cli';
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';
const VERIFIER_BYTES = 32;
const DEVICE_NAME_CHARACTERS_MAX = 64;
/** The increase of the polling interval (RFC 8628, 3.5). */
const INTERVAL_INCREASE_SECONDS = 5;
const SECOND_MS = 1_000;
const SERVER_ERROR_STATUS_MIN = 500;

/**
 * Resolves with the token after a person has approved the login. `show` is called with the address and the code that
 * the person needs.
 */
export async function runDeviceLogin(
  berth: Berth,
  { scopes, deviceName }: { scopes: readonly string[]; deviceName: string },
  show: (startedLogin: StartedLogin) => void,
): Promise<GrantedToken> {
  const verifier = randomBytes(VERIFIER_BYTES).toString('base64url');
  const startedLogin = await dataOf(
    berth.POST('/v1/device/authorizations', {
      body: {
        client_id: CLIENT_ID,
        scope: scopes.join(' '),
        device_name: deviceName.slice(0, DEVICE_NAME_CHARACTERS_MAX),
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      },
    }),
  );
  show(startedLogin);
  return pollForToken(berth, startedLogin, verifier);
}

async function pollForToken(berth: Berth, startedLogin: StartedLogin, verifier: string): Promise<GrantedToken> {
  const deadlineMs = Date.now() + startedLogin.expires_in * SECOND_MS;
  let intervalSeconds = startedLogin.interval;
  while (Date.now() < deadlineMs) {
    await sleep(intervalSeconds * SECOND_MS);
    try {
      return await requestToken(berth, startedLogin.device_code, verifier);
    } catch (error) {
      intervalSeconds += intervalIncreaseSeconds(error);
    }
  }
  throw new CommandFailed(EXIT.denied, 'The login was not approved in time. Run `berth login` again.');
}

const requestToken = (berth: Berth, deviceCode: string, verifier: string): Promise<GrantedToken> =>
  dataOf(
    berth.POST('/v1/device/tokens', {
      body: { grant_type: GRANT_TYPE, device_code: deviceCode, client_id: CLIENT_ID, code_verifier: verifier },
    }),
  );

/**
 * Returns the number of seconds by which to increase the polling interval. Throws errors that would occur again with
 * every further request.
 */
function intervalIncreaseSeconds(error: unknown): number {
  if (!(error instanceof BerthError)) throw error;
  const { code, status } = error;
  if (code === 'authorization_pending') return 0;
  // The authorization is still pending after an error from a server that is restarting or busy.
  if (code === 'slow_down' || code === 'rate_limited' || code === 'unreachable') return INTERVAL_INCREASE_SECONDS;
  if (status !== undefined && status >= SERVER_ERROR_STATUS_MIN) return INTERVAL_INCREASE_SECONDS;
  if (code === 'access_denied')
    throw new CommandFailed(EXIT.denied, 'The login was denied. To request another approval, run `berth login` again.');
  throw error;
}
