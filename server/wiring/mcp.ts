// The wiring of the MCP endpoint: the browser tools.

import type { BrowserToolsParts } from '../domain/mcp/browser-tools.ts';
import { BrowserTools } from '../domain/mcp/browser-tools.ts';
import { normaliseCreate } from '../entry/http/normalise-create.ts';
import type { Driving } from './driving.ts';
import type { Foundation } from './foundation.ts';
import { offeredBy } from './offered.ts';

export interface McpDeps extends Pick<BrowserToolsParts, 'sessions' | 'live' | 'uploads'> {
  readonly driving: Driving;
}

export function openMcp(foundation: Foundation, { sessions, live, uploads, driving }: McpDeps) {
  const offered = offeredBy(foundation);
  const tools = new BrowserTools({
    ...{ sessions, live, uploads, ...driving },
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
  });
  return { service: tools };
}
