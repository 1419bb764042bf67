// Checks whether this user may create user namespaces. Uses the program that creates them for boxes.
import { spawnSync } from 'node:child_process';
import { TOOL_PATH } from './tools.ts';

const ATTEMPT_TIMEOUT_MS = 5000;

/** Returns the system's error message, or undefined if this user may create user namespaces. */
export function userNamespacesRefusal(): string | undefined {
  const options = { timeout: ATTEMPT_TIMEOUT_MS, env: { PATH: TOOL_PATH }, encoding: 'utf8' as const };
  const result = spawnSync('unshare', ['--user', '--map-current-user', 'true'], options);
  if (result.status === 0) return undefined;
  return result.stderr?.trim() || result.error?.message || `unshare exited with ${result.status ?? result.signal}`;
}

export const canUseUserNamespaces = (): boolean => userNamespacesRefusal() === undefined;
