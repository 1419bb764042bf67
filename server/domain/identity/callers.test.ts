// Tests which credentials are accepted, how long they are cached, and that a revocation takes effect at once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyRow, TokenRow } from '../../engines/store/rows/credentials.ts';
import type { HumanSessionRow } from '../../engines/store/rows/human-sessions.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type Fault, isFault } from '../../kit/fault.ts';
import type { AccountId, ApplicationId, HumanSessionId, KeyId, TokenId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { Callers } from './callers.ts';
import { mint } from './credentials.ts';

const SECOND_MS = 1000;

const agentKey = mint('agent_key');
const token = mint('personal_token');
const text = agentKey.text.reveal();

const KEY: KeyRow = {
  id: 'key-1' as KeyId,
  applicationId: 'app-1' as ApplicationId,
  name: 'k',
  prefix: agentKey.prefix,
  hash: agentKey.hash,
  scopes: ['browsers:read'],
  grants: [],
  cidrAllow: [],
  revision: 1,
  createdAt: new Date(0),
};

const TOKEN: TokenRow = {
  id: 'token-1' as TokenId,
  accountId: 'account-1' as AccountId,
  kind: 'personal',
  name: 't',
  prefix: token.prefix,
  hash: token.hash,
  scopes: ['keys:write'],
  cidrAllow: [],
  createdAt: new Date(0),
};

const personCookie = mint('human_session');
const HUMAN_SESSION: HumanSessionRow & { strongestAcr: 'phr' } = {
  id: 'session-1' as HumanSessionId,
  accountId: 'account-1' as AccountId,
  hash: personCookie.hash,
  authTime: new Date(0),
  acr: 'berth:1',
  createdAt: new Date(0),
  expiresAt: new Date(100 * SECOND_MS),
  idleExpiresAt: new Date(50 * SECOND_MS),
  strongestAcr: 'phr',
};

/** A store with one key, one token and one person. It counts reads, and its responses can be delayed. */
async function setup({ key = KEY as KeyRow | undefined, wait = async () => {} } = {}) {
  const seen = {
    reads: 0,
    touches: [] as string[],
    notices: [] as string[],
    uses: 0,
    key,
    person: HUMAN_SESSION,
    heard: (_: string) => {},
    gap: () => {},
    closed: false,
  };
  const clock = { ms: 0, now: () => new Date(clock.ms), monotonicMs: () => clock.ms, sleep: async () => {} };
  const store: Pick<Store, 'listen'> & Pick<Store, 'keys' | 'tokens' | 'humanSessions' | 'consumerSessions'> = {
    keys: {
      byHash: async (hash: Buffer) => {
        seen.reads += 1;
        const row = seen.key && hash.equals(seen.key.hash) ? seen.key : undefined;
        await wait();
        return row;
      },
      touch: async (_: KeyId, at: Date, ip: string) => void seen.touches.push(`${at.getTime()} ${ip}`),
    } as unknown as Store['keys'],
    tokens: {
      byHash: async (hash: Buffer) => (hash.equals(TOKEN.hash) ? TOKEN : undefined),
      touch: async () => ++seen.uses === 1,
    } as unknown as Store['tokens'],
    humanSessions: {
      byHash: async (hash: Buffer) => (hash.equals(personCookie.hash) ? seen.person : undefined),
      touch: async (_: HumanSessionId, _at: Date, _ip: string, idle: Date) =>
        void seen.touches.push(`idle ${idle.getTime()}`),
    } as unknown as Store['humanSessions'],
    consumerSessions: {} as unknown as Store['consumerSessions'],
    listen: async (_, heard, onGap) => {
      Object.assign(seen, { heard, gap: onGap });
      return {
        close: () => {
          seen.closed = true;
        },
      };
    },
  };
  const callers = await Callers.open(store, clock as Clock, silentLog, {
    recordRefusedAddress: ({ keyId }, { ip }) => void seen.notices.push(`refused ${keyId} ${ip}`),
    recordFirstUse: (account, { id }, { ip }) => void seen.notices.push(`first ${account} ${id} ${ip}`),
  });
  return { callers, seen, clock };
}

const bearerCredentials = (credential: string, ip = '127.0.0.1') => ({ authorization: `Bearer ${credential}`, ip });

async function catchRefusal(work: Promise<unknown>): Promise<Fault> {
  const error: unknown = await work.then(
    () => assert.fail('it was accepted'),
    thrown => thrown,
  );
  if (!isFault(error)) throw error;
  return error;
}

test('an agent key authenticates its application, and a token authenticates its account', async () => {
  const { callers } = await setup();
  assert.deepEqual(await callers.authenticate(bearerCredentials(text), 'agentKey'), {
    kind: 'agentKey',
    applicationId: 'app-1',
    keyId: 'key-1',
    scopes: new Set(['browsers:read']),
    source: { ip: '127.0.0.1' },
  });
  const account = await callers.authenticate(bearerCredentials(token.text.reveal()), 'account');
  assert.deepEqual([account.accountId, account.applicationIds], ['account-1', undefined]);
});

test('accepts the same key in X-BB-API-Key, in Authorization or in both, and ignores the case of the Bearer scheme', async () => {
  const { callers } = await setup();
  for (const sent of [
    { apiKey: text },
    { authorization: `bearer ${text}`, apiKey: text },
    { authorization: `Bearer ${text}`, apiKey: '' },
  ])
    assert.equal((await callers.authenticate({ ...sent, ip: '::1' }, 'agentKey')).keyId, 'key-1');
});

test('returns missing_credentials if no credential was sent, and invalid_credentials if the credential is invalid', async () => {
  const { callers } = await setup();
  const code = async (sent: { authorization?: string; apiKey?: string }) =>
    (await catchRefusal(callers.authenticate({ ...sent, ip: '::1' }, 'agentKey'))).code;
  assert.equal(await code({}), 'missing_credentials');
  assert.equal(await code({ authorization: `Basic ${text}` }), 'invalid_credentials');
  assert.equal(await code({ authorization: '' }), 'invalid_credentials');
  assert.equal(await code({ authorization: `Bearer ${text}x` }), 'invalid_credentials');
  assert.equal(
    await code({ authorization: `Bearer ${text}`, apiKey: mint('agent_key').text.reveal() }),
    'invalid_credentials',
  );
});

test('reports the expected kind of credential if another kind was sent, without a database query', async () => {
  const { callers, seen } = await setup();
  const agentKeyRefusal = await catchRefusal(callers.authenticate(bearerCredentials(token.text.reveal()), 'agentKey'));
  assert.deepEqual([agentKeyRefusal.code, agentKeyRefusal.details], ['invalid_credentials', { expected: 'agent_key' }]);
  const accountRefusal = await catchRefusal(callers.authenticate(bearerCredentials(text), 'account'));
  assert.deepEqual(accountRefusal.details, { expected: 'personal_access_token' });
  assert.equal(seen.reads, 0);
});

test('returns the same error after the same number of queries for unknown, expired and revoked credentials', async () => {
  const inactiveKeys = [undefined, { ...KEY, expiresAt: new Date(0) }, { ...KEY, revokedAt: new Date(0) }];
  const refusals = await Promise.all(
    inactiveKeys.map(async key => {
      const { callers, seen } = await setup({ key });
      if (!key) seen.key = undefined;
      const { code, message, details } = await catchRefusal(callers.authenticate(bearerCredentials(text), 'agentKey'));
      return JSON.stringify({ code, message, details, reads: seen.reads });
    }),
  );
  assert.equal(new Set(refusals).size, 1);
});

test('caches a credential for 30 seconds', async () => {
  const { callers, seen, clock } = await setup();
  await callers.authenticate(bearerCredentials(text), 'agentKey');
  clock.ms = 30 * SECOND_MS - 1;
  await callers.authenticate(bearerCredentials(text), 'agentKey');
  assert.equal(seen.reads, 1);
  clock.ms = 30 * SECOND_MS;
  await callers.authenticate(bearerCredentials(text), 'agentKey');
  assert.equal(seen.reads, 2);
});

test('refuses a cached credential that has since expired', async () => {
  const { callers, clock } = await setup({ key: { ...KEY, expiresAt: new Date(10 * SECOND_MS) } });
  await callers.authenticate(bearerCredentials(text), 'agentKey');
  clock.ms = 10 * SECOND_MS;
  assert.equal(
    (await catchRefusal(callers.authenticate(bearerCredentials(text), 'agentKey'))).code,
    'invalid_credentials',
  );
});

test('removes a revoked credential from the cache on notification, and clears the cache after a gap in notifications', async () => {
  const { callers, seen } = await setup();
  await callers.authenticate(bearerCredentials(text), 'agentKey');
  seen.key = { ...KEY, revokedAt: new Date(0) };
  await callers.authenticate(bearerCredentials(text), 'agentKey');
  seen.heard(KEY.hash.toString('hex'));
  await catchRefusal(callers.authenticate(bearerCredentials(text), 'agentKey'));
  seen.key = KEY;
  await callers.authenticate(bearerCredentials(text), 'agentKey');
  seen.key = { ...KEY, revokedAt: new Date(0) };
  seen.gap();
  await catchRefusal(callers.authenticate(bearerCredentials(text), 'agentKey'));
});

test('does not cache a row that was read before a revocation', async () => {
  const readGate = Promise.withResolvers<void>();
  const { callers, seen } = await setup({ wait: () => readGate.promise });
  const firstAuthentication = callers.authenticate(bearerCredentials(text), 'agentKey');
  seen.key = { ...KEY, revokedAt: new Date(0) };
  seen.heard(KEY.hash.toString('hex'));
  readGate.resolve();
  await firstAuthentication;
  await catchRefusal(callers.authenticate(bearerCredentials(text), 'agentKey'));
});

test('records the use of a credential at most once a minute', async () => {
  const { callers, seen, clock } = await setup();
  for (const ms of [0, 20, 40, 59.999, 60, 90, 120].map(seconds => seconds * SECOND_MS)) {
    clock.ms = ms;
    await callers.authenticate(bearerCredentials(text, '203.0.113.9'), 'agentKey');
    if (seen.key && seen.touches.length > 0)
      seen.key = { ...KEY, lastUsedAt: new Date(Number(seen.touches.at(-1)?.split(' ')[0])) };
  }
  assert.deepEqual(seen.touches, ['0 203.0.113.9', '60000 203.0.113.9', '120000 203.0.113.9']);
});

test('accepts a credential only from its allowed address ranges', async () => {
  const { callers, seen } = await setup({ key: { ...KEY, cidrAllow: ['203.0.113.0/24'] } });
  await callers.authenticate(bearerCredentials(text, '203.0.113.9'), 'agentKey');
  assert.equal(
    (await catchRefusal(callers.authenticate(bearerCredentials(text, '198.51.100.1'), 'agentKey'))).code,
    'address_not_allowed',
  );
  assert.deepEqual(seen.notices, ['refused key-1 198.51.100.1']);
});

test('reports the first use of a token only once', async () => {
  const { callers, clock, seen } = await setup();
  for (const ms of [0, 60_000, 120_000]) {
    clock.ms = ms;
    await callers.authenticate(bearerCredentials(token.text.reveal()), 'account');
  }
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(seen.notices, ['first account-1 token-1 127.0.0.1']);
});

test('Callers.close stops listening for notifications', async () => {
  const { callers, seen } = await setup();
  await callers.close();
  assert.ok(seen.closed);
});

test('authenticates a person by cookie until the idle timeout, and refuses the cookie value as a bearer credential', async () => {
  const { callers, clock, seen } = await setup();
  const cookie = personCookie.text.reveal();
  const { via } = await callers.authenticate({ cookie, ip: '::1' }, 'human');
  assert.deepEqual([via.kind, via.acr, via.strongestAcr], ['human_session', 'berth:1', 'phr']);
  assert.deepEqual(seen.touches, [`idle ${12 * 3600 * SECOND_MS}`]);
  assert.equal((await callers.authenticate({ cookie, ip: '::1' }, 'account')).accountId, 'account-1');
  for (const kind of ['human', 'account', 'agentKey'] as const)
    assert.equal(
      (await catchRefusal(callers.authenticate(bearerCredentials(cookie), kind))).code,
      'invalid_credentials',
    );
  assert.equal(
    (await catchRefusal(callers.authenticate(bearerCredentials(token.text.reveal()), 'human'))).details?.expected,
    'human_session',
  );
  clock.ms = 50 * SECOND_MS;
  assert.equal((await catchRefusal(callers.authenticate({ cookie, ip: '::1' }, 'human'))).code, 'invalid_credentials');
});

test('accepts a person after the cached idle timeout if an earlier request extended the timeout', async () => {
  const { callers, clock, seen } = await setup();
  const credentials = { cookie: personCookie.text.reveal(), ip: '::1' };
  clock.ms = 40 * SECOND_MS;
  await callers.authenticate(credentials, 'human');
  assert.equal(seen.touches.length, 1);
  seen.person = { ...HUMAN_SESSION, idleExpiresAt: new Date(90 * SECOND_MS) }; // The row after the use was recorded.
  clock.ms = 55 * SECOND_MS;
  assert.equal((await callers.authenticate(credentials, 'human')).accountId, 'account-1');
});
