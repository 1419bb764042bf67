// `berth mcp`: an MCP server on standard input and output, for clients that start MCP servers as programs. Lists and
// calls the tools of a Berth service over HTTP, and defines none itself.
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import about from '../../package.json' with { type: 'json' };
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { type Connection, type KeyOptions, overHttp } from '../http/connection.ts';
import type { Terminal } from '../terminal.ts';

export interface McpOptions extends KeyOptions {
  /** The id of the application that the agent key belongs to. */
  readonly app?: string;
}

/** Runs until the client closes the standard input. */
export const serveMcp = (terminal: Terminal, options: McpOptions): Promise<void> =>
  overHttp(terminal, options, async connection => {
    const appId = options.app ?? connection.profile?.key?.applicationId;
    if (appId === undefined)
      throw new CommandFailed(
        EXIT.usage,
        'The application of the agent key is unknown. Pass its id with --app ID, or run `berth login` and `berth keys create --app ID --save`.',
      );
    const sendRequest = createSendRequest(connection, appId);
    await sendRequest('ping', {}); // If the address or the key is wrong, the command fails here with an exit code.
    const inputEnd = Promise.withResolvers<void>();
    const stdioServer = serveStdio(() => createServer(sendRequest), { transport: createTransport(inputEnd.resolve) });
    await inputEnd.promise;
    await stdioServer.close();
  });

type SendRequest = (
  method: string,
  params: Readonly<Record<string, unknown>>,
) => Promise<Readonly<Record<string, unknown>>>;

const IMPLEMENTATION_INFO = { name: 'berth', title: 'Berth', version: about.version };

/**
 * Forwards the client's declared capabilities to the service, so that the service may ask a person to open an address.
 * For clients that speak the 2025 revision of the protocol, the MCP library sends the question in the form of that
 * revision, and then calls the handler again.
 */
function createServer(sendRequest: SendRequest): Server {
  const server = new Server(IMPLEMENTATION_INFO, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', async () => ({ tools: [], ...(await sendRequest('tools/list', {})) }));
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const declaredCapabilities: unknown =
      Object(mcpReq.envelope)[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities();
    const { elicitation } = Object(declaredCapabilities);
    const [inputResponses, requestState] = [mcpReq.inputResponses, mcpReq.requestState<string>()];
    return {
      ...{ content: [] },
      ...(await sendRequest('tools/call', {
        ...{ name: params.name, arguments: params.arguments ?? {} },
        ...(inputResponses === undefined ? {} : { inputResponses }),
        ...(requestState === undefined ? {} : { requestState }),
        _meta: {
          [PROTOCOL_VERSION_META_KEY]: PROTOCOL_REVISION,
          [CLIENT_INFO_META_KEY]: IMPLEMENTATION_INFO,
          [CLIENT_CAPABILITIES_META_KEY]: elicitation === undefined ? {} : { elicitation },
        },
      })),
    };
  });
  return server;
}

/** The protocol revision named in messages that call tools. Other messages name no revision. */
const PROTOCOL_REVISION = '2026-07-28';

/** Returns a function that sends a message and returns its result. */
function createSendRequest({ berth }: Connection, appId: string): SendRequest {
  let lastId = 0;
  return async (method, params) => {
    lastId += 1;
    const { data } = await berth.POST('/v1/agent/applications/{appId}/mcp', {
      params: { path: { appId } },
      headers: {
        accept: 'application/json, text/event-stream',
        ...(params._meta === undefined
          ? {}
          : { 'mcp-protocol-version': PROTOCOL_REVISION, 'mcp-method': method, 'mcp-name': String(params.name) }),
      },
      body: { jsonrpc: '2.0', id: lastId, method, params },
      parseAs: 'text',
    });
    return resultOf(String(data ?? ''));
  };
}

/** Reads the result from a response, which is JSON or one event of an event stream. */
function resultOf(text: string): Readonly<Record<string, unknown>> {
  const [, event] = /^data: (.*)$/m.exec(text) ?? [];
  const message: { result?: Record<string, unknown>; error?: { code: number; message: string } } = JSON.parse(
    event ?? text,
  );
  if (message.error) throw new ProtocolError(message.error.code, message.error.message);
  if (!message.result) throw new ProtocolError(ProtocolErrorCode.InternalError, 'The service returned no result.');
  return message.result;
}

function createTransport(onEnded: () => void): StdioServerTransport {
  process.stdin.once('end', onEnded).once('close', onEnded);
  return new StdioServerTransport();
}
