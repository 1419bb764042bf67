// The MCP endpoint: a request contains one JSON-RPC message, and the HTTP response contains the JSON-RPC response. The
// Model Context Protocol defines the messages.
import { Type } from 'typebox';
import { AnyObject, Uuid } from './common.ts';

export const McpParams = Type.Object({ appId: Uuid('Id of the application of the agent key.') });

export const McpHeaders = Type.Object({
  'mcp-protocol-version': Type.Optional(
    Type.String({
      maxLength: 50,
      description: 'Revision of the protocol that the message follows, for example `2026-07-28`.',
    }),
  ),
  'mcp-session-id': Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'The value from the response to `initialize`, in the 2025 revisions of the protocol.',
    }),
  ),
});

export const McpError = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    error: Type.Object({ code: Type.Integer(), message: Type.String() }, { additionalProperties: true }),
  },
  { additionalProperties: true, description: 'A JSON-RPC error, for a message that violates the protocol.' },
);

export const McpMessage = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Optional(Type.Union([Type.String({ maxLength: 500 }), Type.Integer()])),
    method: Type.Optional(
      Type.String({ maxLength: 200, description: 'Name of the method, for example `tools/list` or `tools/call`.' }),
    ),
    params: Type.Optional(AnyObject('Parameters of the method, as the protocol defines them.')),
  },
  { additionalProperties: true, description: 'A JSON-RPC message of the Model Context Protocol.' },
);
