// The commands and events of the DevTools protocol with their parameters, from the package that Puppeteer uses.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { HostileValues } from './hostile.ts';

interface Definition {
  readonly name: string;
  readonly type?: string;
  readonly optional?: boolean;
  readonly enum?: readonly string[];
  readonly parameters?: readonly Definition[];
}

interface Domain {
  readonly domain: string;
  readonly commands: readonly Definition[];
  readonly events?: readonly Definition[];
}

export interface Method {
  readonly name: string;
  readonly parameters: readonly Definition[];
}

const puppeteerRequire = createRequire(createRequire(import.meta.url).resolve('puppeteer-core'));
const domains = ['browser', 'js'].flatMap(half => {
  const file: { domains: Domain[] } = JSON.parse(
    readFileSync(puppeteerRequire.resolve(`devtools-protocol/json/${half}_protocol.json`), 'utf8'),
  );
  return file.domains;
});

const methodsOf = (kind: 'commands' | 'events'): readonly Method[] =>
  domains.flatMap(({ domain, [kind]: methods = [] }) =>
    methods.map(({ name, parameters = [] }) => ({ name: `${domain}.${name}`, parameters })),
  );

export const COMMANDS = methodsOf('commands');
export const EVENTS = methodsOf('events');

/** A value of the required type. */
export function plausibleValue({ type, enum: words }: Definition, hostile: HostileValues): unknown {
  if (words) return hostile.pick(words);
  if (type === 'string') return hostile.pick(['about:blank', 'x', 'http://a.test/', '1']);
  if (type === 'integer' || type === 'number') return hostile.pick([0, 1, 2, 100]);
  if (type === 'boolean') return hostile.chance(2);
  if (type === 'array') return [];
  return type === 'object' ? {} : hostile.pick(['1', 1]);
}

/** Returns parameters for the method, one of which is hostile. `turn` selects the hostile one. */
export function hostileParams({ parameters }: Method, turn: number, hostile: HostileValues): Record<string, unknown> {
  const hostileParameter = parameters[turn % Math.max(1, parameters.length)];
  const params: Record<string, unknown> = {};
  for (const one of parameters)
    if (one === hostileParameter) params[one.name] = hostile.value();
    else if (!one.optional || hostile.chance(4)) params[one.name] = plausibleValue(one, hostile);
  if (hostile.chance(8)) params[hostile.text().slice(0, 30)] = hostile.value();
  return params;
}
