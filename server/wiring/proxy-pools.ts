// The operator's proxy file (BERTH_PROXY_POOLS): a JSON list of pools. An error names the position of the mistake in
// the file, but no values from the file, because some are passwords.
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
  let parsedFile: unknown;
  try {
    parsedFile = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw badValue('BERTH_PROXY_POOLS', file, 'a JSON file that can be read');
  }
  if (!Value.Check(Pools, parsedFile)) {
    const [firstError] = Value.Errors(Pools, parsedFile);
    throw invalidPool(
      firstError?.instancePath ?? '',
      `{"pools": [{"name", "country", "proxies": [{"server"}]}]}; the value ${firstError?.message}`,
    );
  }
  return parsedFile.pools.map(({ proxies, ...pool }, index) => {
    const poolPath = `/pools/${index}`;
    if (pool.timeZone !== undefined && !isTimeZone(pool.timeZone))
      throw invalidPool(`${poolPath}/timeZone`, 'an IANA time zone');
    const storedProxies = proxies.map(({ server, ...credentials }, number): StoredProxy => {
      const proxyAddress = parseProxyAddress(server);
      if (typeof proxyAddress === 'string')
        throw invalidPool(
          `${poolPath}/proxies/${number}/server`,
          `a valid proxy address, but the value ${proxyAddress}`,
        );
      const problem = userProblem({ ...proxyAddress, ...credentials });
      if (problem !== undefined)
        throw invalidPool(`${poolPath}/proxies/${number}`, `a valid proxy, but this one ${problem}`);
      return { name: pool.name, ...proxyAddress, ...credentials, trusted: true };
    });
    const [firstProxy, ...otherProxies] = storedProxies;
    if (!firstProxy) throw invalidPool(poolPath, 'at least one proxy');
    return { ...pool, proxies: [firstProxy, ...otherProxies] };
  });
}

function isTimeZone(text: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
