// Overrides that clients set on a page: size, touch, media, network. Chromium keeps some overrides per page and not per
// channel. A channel that detaches therefore resets overrides that another channel has set (observed for device
// metrics, touch and media type). The last command of each kind is stored with its channel, and is sent again when a
// channel of the server has been detached, or another client has disconnected.

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
/** Commands that have an effect each time that they are sent, and set nothing that could be restored. */
const NOT_OVERRIDES: ReadonlySet<string> = new Set(['Emulation.setPageScaleFactor', 'Emulation.setVirtualTimePolicy']);
/** Longer commands are not stored. No usual override command is this long. */
const COMMAND_BYTES_MAX = 16 * 1024;

/**
 * Returns the name of the override that `method` sets or clears. The name is the method that sets the override.
 * Undefined for other methods.
 */
export function overrideOf(method: string): string | undefined {
  if (NOT_OVERRIDES.has(method)) return undefined;
  if (OTHER_OVERRIDES.has(method) || method.startsWith('Emulation.set')) return method;
  return method.startsWith('Emulation.clear') ? method.replace('.clear', '.set') : undefined;
}

/** Stores a command that is sent to the browser, if the command sets or clears an override. */
export function noteOverride(channel: OverridingChannel, method: string, message: Buffer): void {
  const name = overrideOf(method);
  if (name === undefined || channel.targetId === undefined) return;
  channel.overrides ??= new Map();
  channel.overrides.delete(name); // Deleted first, so that `set` inserts it as the newest.
  if (message.length <= COMMAND_BYTES_MAX) channel.overrides.set(name, Buffer.from(message));
}

/** Returns the stored commands with new ids. If `name` is given, returns only the commands for this override. */
export function overrideCommands(channel: OverridingChannel, newId: () => number, name?: string): readonly Buffer[] {
  const selectedOverrides = [...(channel.overrides ?? [])].filter(([one]) => name === undefined || one === name);
  return selectedOverrides.flatMap(([, message]) => {
    const command = parseJson(message);
    return isObject(command) ? [encode({ ...command, id: newId(), sessionId: channel.id })] : [];
  });
}
