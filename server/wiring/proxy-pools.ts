// The operator's proxy file (BERTH_PROXY_POOLS): a JSON list of pools. An error names the place of the mistake. Error
// messages contain no values from the file, because some are passwords.
import { readFileSync } from 'node:fs';
import Type from 'typebox';
import Value from 'typebox/value';
import type { ProxyPool, StoredProxy } from '../domain/network/pools.ts';
import { parseProxyAddress, userProblem } from '../domain/network/proxies.ts';
import { type BadConfig, badValue } from '../kit/environment.ts';

const Server = Type.Object(
  {
    server: Type.String({ maxLength: 2048 }),
    username: Type.Optional(Type.String({ maxLength: 1024 })),
    password: Type.Optional(Type.String({ maxLength: 1024 })),
  },
  { additionalProperties: false },
);

const Pools = Type.Object(
  {
    pools: Type.Array(
      Type.Object(
        {
          name: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' }),
          country: Type.String({ pattern: '^[A-Z]{2}$' }),
          state: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
          city: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
          timeZone: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
          proxies: Type.Array(Server, { minItems: 1, maxItems: 1000 }),
        },
        { additionalProperties: false },
      ),
      { maxItems: 1000 },
    ),
  },
  { additionalProperties: false },
);

export function readProxyPools(file: string): readonly ProxyPool[] {
  const invalidPool = (place: string, expected: string): BadConfig =>
    badValue('BERTH_PROXY_POOLS', file, `${expected} (at ${place === '' ? 'the top' : place})`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw badValue('BERTH_PROXY_POOLS', file, 'a JSON file that can be read');
  }
  if (!Value.Check(Pools, parsed)) {
    const [first] = Value.Errors(Pools, parsed);
    throw invalidPool(
      first?.instancePath ?? '',
      `{"pools": [{"name", "country", "proxies": [{"server"}]}]}; it ${first?.message}`,
    );
  }
  return parsed.pools.map(({ proxies, ...pool }, index) => {
    const place = `/pools/${index}`;
    if (pool.timeZone !== undefined && !isTimeZone(pool.timeZone))
      throw invalidPool(`${place}/timeZone`, 'an IANA time zone');
    const members = proxies.map(({ server, ...user }, number): StoredProxy => {
      const proxyAddress = parseProxyAddress(server);
      if (typeof proxyAddress === 'string')
        throw invalidPool(`${place}/proxies/${number}/server`, `an address: it ${proxyAddress}`);
      const problem = userProblem({ ...proxyAddress, ...user });
      if (problem !== undefined) throw invalidPool(`${place}/proxies/${number}`, `a proxy: it ${problem}`);
      return { name: pool.name, ...proxyAddress, ...user, trusted: true };
    });
    const [first, ...others] = members;
    if (!first) throw invalidPool(place, 'at least one proxy');
    return { ...pool, proxies: [first, ...others] };
  });
}

function isTimeZone(text: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
