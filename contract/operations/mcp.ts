// The endpoint for clients that speak MCP.
import { McpError, McpHeaders, McpMessage, McpParams } from '../mcp.ts';
import type { Operation } from '../operation.ts';

export const MCP_OPERATIONS = {
  callMcp: {
    tag: 'MCP',
    method: 'POST',
    path: '/v1/agent/applications/{appId}/mcp',
    summary: 'Send an MCP message',
    description:
      'The Model Context Protocol over streamable HTTP, revision 2026-07-28 and, for older clients, the revisions of 2025. There is no MCP session: each message is handled independently. The tools open, drive and close browser sessions of the application (scope `browsers:connect`), and call the operations that the key has a grant for (scope `operations:invoke`).',
    credential: 'agentKey',
    scopes: ['browsers:connect', 'operations:invoke'],
    isWrite: true,
    isExemptFromRateLimits: true,
    ownOriginOnly: true,
    mount: 'native',
    jsonRpcError: McpError,
    params: McpParams,
    headers: McpHeaders,
    body: McpMessage,
    bodyExample: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
    responses: {
      200: {
        description: 'The JSON-RPC response, as JSON or, for older clients, as an event stream with one event.',
        schema: McpMessage,
        streamDescription: 'The JSON-RPC response as one event.',
        headers: {
          'mcp-session-id':
            'Present in the response to `initialize` if the client follows a 2025 revision and can open addresses. The client sends it again with later messages; nothing else about the client is kept.',
        },
      },
      202: { description: 'A notification was received.' },
    },
    errors: ['origin_not_allowed', 'not_found', 'unsupported_media_type'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
