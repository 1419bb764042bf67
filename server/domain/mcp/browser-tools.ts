// The browser tools of MCP clients. Sessions are opened and closed as over HTTP, and the driver acts on their pages.
// Everything is done with the rights of the calling agent key. No state is kept here: the metadata of a session names
// the key that opened it.
import {
  BROWSER_TOOLS,
  type BrowserToolInput,
  type BrowserToolName,
  PERSON_WAIT_SECONDS_MAX,
} from '../../../contract/browser-tools.ts';
import type { DebugUrls } from '../../../contract/live.ts';
import type { Command, CommandResult, DriveFailed, FileContent, Tab } from '../../engines/driver/command.ts';
import { isFault } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import { pollUntil, WaitExpired } from '../../kit/wait.ts';
import { fault, invalidRequest, scopeMissing } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { CreateOptions, SessionRequest, Sessions, SessionView } from '../sessions/api.ts';
import { commandOf, type HandOverTool, type PageTool } from './commands.ts';
import type { HandOvers } from './hand-overs.ts';
import { type PersonAnswer, refusedResult, type ToolResult } from './tool-result.ts';

/** The metadata field that names the agent key that opened a session with a tool. */
const OPENED_BY_METADATA = 'mcpKey';
const SESSIONS_LISTED_MAX = 100;
/** How long to wait for the end of the session after the connection to its browser was lost. */
const END_WAIT_MAX_MS = 3_000;
const END_POLL_INTERVAL_MS = 100;
const FILE_BYTES_MAX = 50 * 1024 ** 2;

export interface BrowserToolsParts {
  readonly sessions: Pick<Sessions, 'create' | 'list' | 'read' | 'update'>;
  /** Converts the input of `browser_open` and the metadata of the session into a session request. */
  readonly requestOf: (
    body: BrowserToolInput<'browser_open'>,
    metadata: Readonly<Record<string, string>>,
  ) => SessionRequest;
  readonly live: { urls(caller: AgentCaller, id: string, query: { expiresIn?: number }): Promise<DebugUrls> };
  readonly handOvers: Pick<HandOvers, 'request' | 'wait' | 'cancel'>;
  readonly uploads: { content(caller: AgentCaller, id: string, name: string, bytesMax: number): Promise<Uint8Array> };
  readonly driver: {
    run(target: { session: string; address: string }, command: Command): Promise<CommandResult>;
    forget(session: string): void;
  };
  readonly isDriveFailed: (error: unknown) => error is DriveFailed;
  /**
   * The address at which the driver reaches the browser of a session, with the rights of this caller. With `guest`, the
   * driver's connection does not keep the session running after the clients of the session have disconnected.
   */
  readonly addressOf: (caller: AgentCaller, id: SessionId, access: 'guest') => string;
  /** Keeps a session without clients running until the hold is closed. */
  readonly holdSession: (id: SessionId) => { close(): void };
}

/** `line` is set in a fleet if another host may handle the request when this host has no free slot. */
export type ToolOptions = Pick<CreateOptions, 'signal' | 'line'>;

export class BrowserTools {
  readonly #parts: BrowserToolsParts;

  constructor(parts: BrowserToolsParts) {
    this.#parts = parts;
  }

  /**
   * Calls a tool. The input has already been validated for this tool. A failure is returned as a result that describes
   * the failure for the model.
   */
  async call(caller: AgentCaller, name: BrowserToolName, input: unknown, options: ToolOptions): Promise<ToolResult> {
    return this.#catchRefusals(() => {
      assertScope(caller, name);
      return this.#call(caller, name, input, options);
    });
  }

  /** Continues a call after the person was shown the address of a hand-off. */
  resume(caller: AgentCaller, id: string, answer: PersonAnswer, signal: AbortSignal): Promise<ToolResult> {
    const { handOvers } = this.#parts;
    return this.#catchRefusals(async () => {
      if (answer === 'accept') return handOvers.wait(caller, { id }, PERSON_WAIT_SECONDS_MAX, signal);
      const cancelResult = await handOvers.cancel(caller, { id });
      return { ...cancelResult, text: `The person did not open the page. ${cancelResult.text}`, isError: true };
    });
  }

  /**
   * Returns the session for a call without `sessionId`: the only open session of this key. Undefined if the key has no
   * open session, or several.
   */
  async onlySession(caller: AgentCaller): Promise<string | undefined> {
    const [firstSession, ...otherSessions] = await this.#openSessions(caller);
    return otherSessions.length === 0 ? firstSession?.id : undefined;
  }

  async #catchRefusals(work: () => Promise<ToolResult>): Promise<ToolResult> {
    try {
      return await work();
    } catch (error) {
      if (isFault(error) && error.code !== 'internal') return refusedResult(error);
      return this.#driveFailure(error);
    }
  }

  /** Returns the failure of a command as a result. Throws any other error. */
  #driveFailure(error: unknown): ToolResult {
    if (this.#parts.isDriveFailed(error)) return { text: error.message, isError: true };
    throw error;
  }

  async #call(caller: AgentCaller, name: BrowserToolName, input: unknown, options: ToolOptions): Promise<ToolResult> {
    switch (name) {
      case 'browser_open':
        return this.#open(caller, input as BrowserToolInput<'browser_open'>, options);
      case 'browser_sessions':
        return { text: listText(await this.#openSessions(caller)) };
      case 'browser_close':
        return this.#close(caller, await this.#session(caller, input));
      case 'browser_hand_over':
      case 'browser_hand_over_wait':
      case 'browser_hand_over_cancel':
        return this.#handOver(caller, name, input, options.signal);
      default:
        return this.#drive(caller, name, input);
    }
  }

  async #open(caller: AgentCaller, input: BrowserToolInput<'browser_open'>, options: ToolOptions): Promise<ToolResult> {
    const request = this.#parts.requestOf(input, { ...input.metadata, [OPENED_BY_METADATA]: caller.keyId });
    const { session, warnings } = await this.#parts.sessions.create(caller, request, options);
    const id = session.id as SessionId;
    const command: Command =
      input.url === undefined ? { do: 'snapshot' } : await commandOf('browser_navigate', { url: input.url }, noFiles);
    // The session stays open although its first command failed, so its id must be returned.
    const firstResult = await this.#resultOf(caller, id, command).catch(error => this.#driveFailure(error));
    const headLines = [
      `Opened session ${id}. It ends at ${session.expiresAt}.`,
      ...warnings.map(({ message }) => `Warning: ${message}`),
    ];
    const { urls } = this.#parts.live;
    const addresses = await urls.call(this.#parts.live, caller, id, {}).then(liveAddress, () => ({}));
    return { ...firstResult, text: [...headLines, firstResult.text].join('\n\n'), sessionId: id, addresses };
  }

  async #close(caller: AgentCaller, { id }: SessionView): Promise<ToolResult> {
    this.#parts.driver.forget(id);
    const endedSession = await this.#parts.sessions.update(caller, id, { status: 'REQUEST_RELEASE' });
    return { text: `Session ${id} is closed (${endedSession.status}).`, sessionId: id };
  }

  async #handOver(caller: AgentCaller, name: HandOverTool, input: unknown, signal: AbortSignal): Promise<ToolResult> {
    const { handOvers } = this.#parts;
    if (name === 'browser_hand_over') {
      const { id } = await this.#session(caller, input);
      return handOvers.request(caller, id as SessionId, input as BrowserToolInput<typeof name>, signal);
    }
    const { handoffId, seconds = PERSON_WAIT_SECONDS_MAX } = input as BrowserToolInput<'browser_hand_over_wait'>;
    const handoffTarget =
      handoffId === undefined
        ? { session: (await this.#session(caller, input)).id as SessionId }
        : { id: handoffId.toLowerCase() };
    return name === 'browser_hand_over_wait'
      ? handOvers.wait(caller, handoffTarget, seconds, signal)
      : handOvers.cancel(caller, handoffTarget);
  }

  async #drive(caller: AgentCaller, name: PageTool, input: unknown): Promise<ToolResult> {
    const { id } = await this.#session(caller, input);
    const command = await commandOf(name, input, files => this.#readFiles(caller, id, files));
    return { ...(await this.#resultOf(caller, id as SessionId, command)), sessionId: id };
  }

  async #resultOf(caller: AgentCaller, id: SessionId, command: Command): Promise<ToolResult> {
    const { driver, addressOf, holdSession } = this.#parts;
    const sessionHold = holdSession(id);
    try {
      const commandResult = await driver.run({ session: id, address: addressOf(caller, id, 'guest') }, command);
      return { text: describe(commandResult), ...(commandResult.image ? { image: commandResult.image } : {}) };
    } catch (error) {
      if (this.#parts.isDriveFailed(error) && error.why === 'connection') await this.#throwIfEnded(caller, id);
      throw error;
    } finally {
      sessionHold.close();
    }
  }

  /** Returns the session for a call. A session that has ended is reported and never replaced by a new one. */
  async #session(caller: AgentCaller, input: unknown): Promise<SessionView> {
    const { sessionId } = input as { readonly sessionId?: string };
    if (sessionId !== undefined) return this.#assertRunning(caller, sessionId);
    const openedSessions = await this.#openSessions(caller);
    const [firstSession] = openedSessions;
    if (firstSession && openedSessions.length === 1) return firstSession;
    if (openedSessions.length > 1)
      throw fault(
        'invalid_request',
        `This key has ${openedSessions.length} open sessions. Select one of them with sessionId.\n${listText(openedSessions)}`,
      );
    throw await this.#noOpenSession(caller);
  }

  async #noOpenSession(caller: AgentCaller) {
    const { sessions } = await this.#parts.sessions.list(caller, { q: openedByQuery(caller), limit: 1 });
    const [lastSession] = sessions;
    const lastSessionText = lastSession ? ` The last session ${endedText(lastSession)}` : '';
    return fault('session_not_running', `No browser is open.${lastSessionText} Open one with browser_open.`);
  }

  async #assertRunning(caller: AgentCaller, id: string): Promise<SessionView> {
    const session = await this.#parts.sessions.read(caller, id.toLowerCase());
    if (session.status === 'RUNNING') return session;
    throw fault(
      'session_not_running',
      `Session ${endedText(session)} Its pages are lost. Open another session with browser_open.`,
    );
  }

  /**
   * Throws if the session has ended. Waits briefly, because the browser ends slightly before the status of the session
   * changes.
   */
  async #throwIfEnded(caller: AgentCaller, id: string): Promise<void> {
    const assertStillRunning = async (): Promise<undefined> => void (await this.#assertRunning(caller, id));
    await pollUntil(END_WAIT_MAX_MS, `session ${id} to end`, assertStillRunning, END_POLL_INTERVAL_MS).catch(error => {
      if (!(error instanceof WaitExpired)) throw error;
    });
  }

  async #openSessions(caller: AgentCaller): Promise<readonly SessionView[]> {
    const query = { status: 'RUNNING', q: openedByQuery(caller), limit: SESSIONS_LISTED_MAX };
    return (await this.#parts.sessions.list(caller, query)).sessions;
  }

  async #readFiles(
    caller: AgentCaller,
    id: string,
    files: BrowserToolInput<'browser_file_upload'>['files'],
  ): Promise<readonly FileContent[]> {
    return Promise.all(
      files.map(async ({ name, mimeType = 'application/octet-stream', text, base64 }) => {
        if (text !== undefined && base64 !== undefined)
          throw invalidRequest([
            {
              path: 'files',
              message: `contains ${JSON.stringify(name)} with both text and base64; send only one of them`,
            },
          ]);
        if (base64 !== undefined) return { name, mimeType, bytes: new Uint8Array(Buffer.from(base64, 'base64')) };
        if (text !== undefined) return { name, mimeType, bytes: new Uint8Array(Buffer.from(text)) };
        return { name, mimeType, bytes: await this.#parts.uploads.content(caller, id, name, FILE_BYTES_MAX) };
      }),
    );
  }
}

const noFiles = async (): Promise<readonly FileContent[]> => [];

function assertScope({ scopes }: AgentCaller, name: BrowserToolName): void {
  const tool = BROWSER_TOOLS[name];
  if ('scope' in tool && !scopes.has(tool.scope)) throw scopeMissing([tool.scope]);
}

const openedByQuery = ({ keyId }: AgentCaller): string => `user_metadata['${OPENED_BY_METADATA}']:'${keyId}'`;

const liveAddress = ({ debuggerUrl }: DebugUrls) => ({ liveViewUrl: debuggerUrl });

const endedText = ({ id, status, endReason, endedAt }: SessionView): string =>
  `${id} is not running: ${status}${endReason === undefined ? '' : ` (${endReason})`}${endedAt === undefined ? '' : ` since ${endedAt}`}.`;

const listText = (sessions: readonly SessionView[]): string =>
  sessions.length === 0
    ? 'No session is open.'
    : sessions
        .map(({ id, createdAt, expiresAt }) => `- ${id}, opened at ${createdAt}, ends at ${expiresAt}`)
        .join('\n');

/** Describes a result as Markdown, with the most important part first. */
function describe({ text, page, tabs, blockedBy }: CommandResult): string {
  const textParts = [
    text,
    blockedBy,
    page && `Page: ${page.url}\nTitle: ${page.title}`,
    tabs.length > 1 ? `Tabs:\n${tabs.map(tabLine).join('\n')}` : undefined,
    page?.snapshot === undefined ? undefined : `Snapshot:\n\`\`\`yaml\n${page.snapshot}\n\`\`\``,
    page?.isTruncated ? 'The snapshot does not show the whole page. Use browser_evaluate to read the rest.' : undefined,
  ];
  return textParts.filter(part => part !== undefined && part !== '').join('\n\n');
}

const tabLine = ({ index, title, url, isCurrent }: Tab): string =>
  `- ${index}: ${isCurrent ? '(current) ' : ''}${title} (${url})`;
