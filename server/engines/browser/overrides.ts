// What clients have told a page to pretend: its size, touch, media, network. Chromium keeps some of that once for a page and not for
// each channel, so a channel that leaves resets what another has set (measured: device metrics, touch, media type). What a
// client has said last is remembered with its channel, and said again when a channel of ours has left.

import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { encode } from './messages.ts';

/** What of a channel matters here. */
export interface OverridingChannel {
  readonly id: string;
  readonly targetId: string | undefined;
  /** What it has set on its target, by the name of the override. */
  overrides?: Map<string, Buffer>;
}

const OF_THE_NETWORK: ReadonlySet<string> = new Set([
  'Network.setBlockedURLs',
  'Network.setCacheDisabled',
  'Network.setBypassServiceWorker',
  'Network.emulateNetworkConditions',
  'Network.emulateNetworkConditionsByRule',
  'Network.overrideNetworkState',
  'Page.setBypassCSP',
  'Page.setAdBlockingEnabled',
]);
/** Nothing that is set is longer; each kind of override is kept once for a channel. */
const BYTES_MAX = 16 * 1024;

/** What is cleared is what was set: both have one name. Undefined: this overrides nothing. */
export function overrideOf(method: string): string | undefined {
  if (OF_THE_NETWORK.has(method) || method.startsWith('Emulation.set')) return method;
  return method.startsWith('Emulation.clear') ? method.replace('.clear', '.set') : undefined;
}

/** A command is on its way to the browser. */
export function noteOverride(channel: OverridingChannel, method: string, message: Buffer): void {
  const name = overrideOf(method);
  if (name === undefined || channel.targetId === undefined) return;
  channel.overrides ??= new Map();
  channel.overrides.delete(name); // the order of the last ones counts
  if (message.length <= BYTES_MAX) channel.overrides.set(name, Buffer.from(message));
}

/** The same commands under other ids. `name`: only this one. */
export function overridesAgain(channel: OverridingChannel, newId: () => number, name?: string): readonly Buffer[] {
  const wanted = [...(channel.overrides ?? [])].filter(([one]) => name === undefined || one === name);
  return wanted.flatMap(([, message]) => {
    const said = parseJson(message);
    return isObject(said) ? [encode({ ...said, id: newId(), sessionId: channel.id })] : [];
  });
}
