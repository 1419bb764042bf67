// The wiring of the MCP endpoint: the browser tools, and the driver that works in the browsers for them.

import type { BrowserToolsParts } from '../domain/mcp/browser-tools.ts';
import { BrowserTools } from '../domain/mcp/browser-tools.ts';
import type { Signing } from '../domain/sessions/signing.ts';
import { DriveFailed } from '../engines/driver/command.ts';
import { Driver } from '../engines/driver/driver.ts';
import { normaliseCreate } from '../entry/http/normalise-create.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';
import { offeredBy } from './offered.ts';

export interface McpDeps extends Pick<BrowserToolsParts, 'sessions' | 'live' | 'uploads'> {
  readonly signing: Signing;
  /** The listening address, once the server listens. */
  readonly localUrl: () => string;
}

export function openMcp({ log }: Runtime, foundation: Foundation, deps: McpDeps) {
  const { sessions, live, uploads, signing, localUrl } = deps;
  const offered = offeredBy(foundation);
  const driver = foundation.scope.own(new Driver(log));
  const tools = new BrowserTools({
    ...{ sessions, live, uploads, driver },
    requestOf: ({ contextId, persist = false, timeout, width, height }, metadata) =>
      normaliseCreate(
        {
          ...(timeout === undefined ? {} : { timeout }),
          // The driver disconnects when it is idle.
          keepAlive: true,
          userMetadata: metadata,
          ...(contextId === undefined ? {} : { context: { id: contextId.toLowerCase(), persist } }),
          ...(width === undefined || height === undefined ? {} : { viewport: { width, height } }),
        },
        { mount: 'native', ...offered },
      ),
    isDriveFailed: error => error instanceof DriveFailed,
    addressOf: ({ keyId }, id) =>
      `${localUrl().replace(/^http/, 'ws')}/v1/browsers/sessions/${id}/connect?signingKey=${signing.keyOf(id, keyId)}`,
  });
  return { service: tools };
}
