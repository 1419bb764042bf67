// Overrides that clients set on a page: size, touch, media, network. Chromium keeps some of them per page and not per
// channel, so a channel that detaches resets overrides that another channel has set (observed for device metrics, touch
// and media type). The last command of each kind is kept with its channel and sent again when another channel has been
// detached.

import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { encode } from './messages.ts';

/** The part of a channel that this file uses. */
export interface OverridingChannel {
  readonly id: string;
  readonly targetId: string | undefined;
  /** Commands with which this channel has set overrides on its target, by method. */
  overrides?: Map<string, Buffer>;
}

const OTHER_OVERRIDES: ReadonlySet<string> = new Set([
  'Network.setBlockedURLs',
  'Network.setCacheDisabled',
  'Network.setBypassServiceWorker',
  'Network.emulateNetworkConditions',
  'Network.emulateNetworkConditionsByRule',
  'Network.overrideNetworkState',
  'Page.setBypassCSP',
  'Page.setAdBlockingEnabled',
]);
/** Longer commands are not kept. No usual override is that long. */
const BYTES_MAX = 16 * 1024;

/**
 * Returns the name of the override that `method` sets or clears. The name is the method that sets the override.
 * Undefined for other methods.
 */
export function overrideOf(method: string): string | undefined {
  if (OTHER_OVERRIDES.has(method) || method.startsWith('Emulation.set')) return method;
  return method.startsWith('Emulation.clear') ? method.replace('.clear', '.set') : undefined;
}

/** Remembers a command that is sent to the browser, if it sets or clears an override. */
export function noteOverride(channel: OverridingChannel, method: string, message: Buffer): void {
  const name = overrideOf(method);
  if (name === undefined || channel.targetId === undefined) return;
  channel.overrides ??= new Map();
  channel.overrides.delete(name); // moves it to the end of the order
  if (message.length <= BYTES_MAX) channel.overrides.set(name, Buffer.from(message));
}

/** Returns the remembered commands with new ids. If `name` is given, only the commands for this override. */
export function overrideCommands(channel: OverridingChannel, newId: () => number, name?: string): readonly Buffer[] {
  const selectedOverrides = [...(channel.overrides ?? [])].filter(([one]) => name === undefined || one === name);
  return selectedOverrides.flatMap(([, message]) => {
    const command = parseJson(message);
    return isObject(command) ? [encode({ ...command, id: newId(), sessionId: channel.id })] : [];
  });
}
