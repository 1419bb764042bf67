// The wiring of the MCP endpoint: the browser tools, hand-offs, and operations as tools.
import { createHmac } from 'node:crypto';
import type { AgentActions } from '../domain/actions/agent-actions.ts';
import type { Invocations } from '../domain/invocations/invocations.ts';
import type { BrowserToolsParts } from '../domain/mcp/browser-tools.ts';
import { BrowserTools } from '../domain/mcp/browser-tools.ts';
import { HandOvers } from '../domain/mcp/hand-overs.ts';
import { OperationTools } from '../domain/mcp/operation-tools.ts';
import { normalizeCreate } from '../entry/http/normalize-create.ts';
import type { Driving } from './driving.ts';
import type { Foundation } from './foundation.ts';
import type { openHandoffs } from './handoffs.ts';
import { offeredChoicesOf } from './offered.ts';

export interface McpDeps extends Pick<BrowserToolsParts, 'sessions' | 'live' | 'uploads'> {
  readonly driving: Driving;
  readonly handoffs: Awaited<ReturnType<typeof openHandoffs>>;
  readonly invocations: Invocations;
  readonly actions: AgentActions;
}

export function openMcp(foundation: Foundation, deps: McpDeps) {
  const { sessions, live, uploads, driving, handoffs, invocations, actions } = deps;
  const { publicUrl } = foundation.config;
  const rows = foundation.store.handoffs;
  const offeredChoices = offeredChoicesOf(foundation);
  const { requests, handoffFollower, service } = handoffs;
  const tools = new BrowserTools({
    ...{ sessions, live, uploads, ...driving },
    handOvers: new HandOvers({ requests, changeFollower: handoffFollower, handoffs: service, rows, publicUrl }),
    requestOf: ({ contextId, persist = false, timeout, width, height }, metadata) =>
      normalizeCreate(
        {
          ...(timeout === undefined ? {} : { timeout }),
          // Needed because the driver disconnects when it is idle, which would otherwise end the session.
          keepAlive: true,
          userMetadata: metadata,
          ...(contextId === undefined ? {} : { context: { id: contextId.toLowerCase(), persist } }),
          ...(width === undefined || height === undefined ? {} : { viewport: { width, height } }),
        },
        { mount: 'native', ...offeredChoices },
      ),
  });
  const operations = new OperationTools({ invocations, actions, handoffs: service, rows, publicUrl });
  // The key is the same on all hosts, because a call may be continued by a request that reaches another host.
  const stateKey = createHmac('sha256', foundation.secret.reveal()).update('mcp request state').digest();
  return { tools, operations, stateKey };
}
