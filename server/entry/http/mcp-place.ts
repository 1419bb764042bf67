// Determines which host of a fleet answers an MCP message.
import { isBrowserTool, RESULT_TOOL } from '../../../contract/browser-tools.ts';

/**
 * The resource that the message is about. The host of this resource answers the message. `only_session` is the only
 * session that the key has open. `placed` means that the message may start a browser, so a host with a free slot
 * answers. `here` means that any host can answer.
 */
export type McpDestination =
  | { readonly kind: 'session' | 'invocation' | 'action'; readonly id: string }
  | 'only_session'
  | 'placed'
  | 'here';

/** Determines where a message is answered. The message has not been validated. */
export function mcpDestinationOf(body: unknown): McpDestination {
  const { method, params } = Object(body);
  if (method !== 'tools/call') return 'here';
  const { name, arguments: input } = Object(params);
  const { sessionId, invocationId, jobId } = Object(input);
  if (typeof sessionId === 'string') return { kind: 'session', id: sessionId };
  if (name === RESULT_TOOL.name && typeof invocationId === 'string') return { kind: 'invocation', id: invocationId };
  if (name === RESULT_TOOL.name && typeof jobId === 'string') return { kind: 'action', id: jobId };
  if (typeof name !== 'string' || !isBrowserTool(name) || name === 'browser_open') return 'placed';
  return name === 'browser_sessions' ? 'here' : 'only_session';
}
