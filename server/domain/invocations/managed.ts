// Runs the built-in operations in a browser session: one that is created for the call, or one that the caller names.
import type { Static } from 'typebox';
import { TTL_SECONDS_DEFAULT } from '../../../contract/handoffs.ts';
import type { InvocationError } from '../../../contract/invocations.ts';
import {
  type BrowserOperationId,
  type MANAGED_OPERATIONS,
  OPERATION_TIMEOUT_MS_MAX,
  STEP_HANDOFF_CONTROL_SECONDS,
} from '../../../contract/managed-operations.ts';
import type { CreateSession } from '../../../contract/sessions.ts';
import type {
  Capture,
  CapturedPage,
  Command,
  CommandResult,
  DriveFailed,
  DriveFailure,
  Helper,
  StepResult,
  StepsOutcome,
  WantedContent,
} from '../../engines/driver/command.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import type { Clock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import type { InvocationId, SessionId } from '../../kit/ids.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { fault, invalidRequest, scopeMissing, sessionNotRunning } from '../faults.ts';
import type { HandoffFollower } from '../handoffs/handoff-follower.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { SessionRequest, Sessions, SessionView } from '../sessions/api.ts';
import { sessionExclusive } from '../sessions/exclusive.ts';
import { credentialsIn, type OpenedCredentials } from '../stored-credentials/typed-credentials.ts';
import { AwaitedDownloads, type AwaitedDownloadsParts, type DownloadWait } from './awaited-downloads.ts';
import { assertSteps, type GivenStep, stepGroupsOf, stepOf, stepsOutput, wantedFields } from './browser-steps.ts';
import { type CallHandoffs, handoffFailureOf } from './call-handoffs.ts';
import { firstBytes } from './first-bytes.ts';
import type { NewFile, Outcome, PreparedCall, UnsuccessfulOutcome } from './prepared.ts';
import type { PageTyping } from './typing.ts';

/** The metadata field of a session that contains the id of the invocation for which the session was created. */
const INVOCATION_METADATA = 'invocationId';
/** The session may run this much longer than the call, because the session has to start first. */
const SESSION_MARGIN_MS = 60_000;
const SESSION_SECONDS_MIN = 60;
const CONTENT_BYTES_DEFAULT = 262_144;
const TIMEOUT_MS_DEFAULT = 30_000;
const QUALITY_DEFAULT = 80;
const SESSIONS_PER_INVOCATION_MAX = 10;

type InputOf<Id extends BrowserOperationId> = Static<(typeof MANAGED_OPERATIONS)[Id]['input']>;
/** Operations that open a page, or use the page of a session. */
type PageOperationId = Exclude<BrowserOperationId, 'browser.handoff'>;
/** Operations that capture a single result from a page. */
type CapturingOperationId = Exclude<PageOperationId, 'browser.steps'>;
type ProducingOperationId = Exclude<CapturingOperationId, 'browser.download'>;
type AnyInput = { [Id in PageOperationId]: InputOf<Id> }[PageOperationId];

/** The session in which a call runs. */
interface CallSession {
  readonly sessionId: SessionId;
  /** Whether the session was created for the call. If so, it is released afterwards. */
  readonly isOwn: boolean;
  readonly recorded: boolean;
  readonly createdAt: Date;
  /** When the browser was ready. */
  readonly startedAt: Date;
  /** The credentials that may be typed into pages of the session. If set, the session is exclusive. */
  readonly opened?: OpenedCredentials;
}

interface RunningCall extends CallSession {
  readonly row: InvocationRow;
  readonly signal: AbortSignal;
}

interface DriverTarget {
  readonly session: string;
  readonly address: string;
}

/**
 * Prefix of the name under which the driver runs commands in an exclusive session. Because of the prefix, the call has
 * its own connection, which commands under the plain session id never use.
 */
const EXCLUSIVE_TARGET_PREFIX = 'exclusive ';

interface ProducedContent {
  readonly output: JsonObject;
  readonly file?: NewFile;
}

export interface ManagedParts {
  readonly sessions: Pick<Sessions, 'create' | 'read' | 'update' | 'list'>;
  readonly requestOf: (body: CreateSession) => SessionRequest;
  readonly driver: {
    run(target: DriverTarget, command: Command, pageHelper?: Helper): Promise<CommandResult>;
    forget(session: string): void;
  };
  readonly isDriveFailed: (error: unknown) => error is DriveFailed;
  readonly downloads: AwaitedDownloadsParts['rows'];
  readonly clock: Clock;
  /**
   * The address at which the driver reaches the browser. With `pass`, the address also works for an exclusive session.
   * With `guest`, the driver's connection does not keep the session running after the clients of the session have
   * disconnected.
   */
  readonly addressOf: (caller: AgentCaller, id: SessionId, access?: 'guest' | 'pass') => string;
  /** Keeps a session running, even without clients, until the hold is closed. */
  readonly holdSession: (id: SessionId) => { close(): void };
  readonly isExclusive: (caller: AgentCaller, id: SessionId) => Promise<boolean>;
  readonly typing: PageTyping;
  readonly handoffs: Pick<CallHandoffs, 'prepare' | 'step'>;
  /**
   * Waits until no person has control of the call's session, and checks whether a person has taken control during the
   * call.
   */
  readonly handoffFollower: Pick<HandoffFollower, 'waitUntilReturned' | 'assertNotClaimed'>;
  readonly toMarkdown: (page: { html: string; url: string; isWhole: boolean }, jobOwner: string) => Promise<string>;
}

export class ManagedOperations {
  readonly #parts: ManagedParts;

  constructor(parts: ManagedParts) {
    this.#parts = parts;
  }

  /** Checks the rules that the input schema cannot express. */
  assertInput({ scopes }: AgentCaller, operation: BrowserOperationId, callInput: JsonObject): void {
    if (operation === 'browser.handoff') return assertMayConnect(scopes);
    if (operation === 'browser.steps') assertSteps((callInput as InputOf<'browser.steps'>).steps);
    const { url, sessionId, ...rest } = callInput as AnyInput; // Validated against the schema of the operation.
    if ((url === undefined) === (sessionId === undefined))
      throw invalidRequest([{ path: 'input', message: 'requires either url or sessionId' }]);
    if (sessionId === undefined) return;
    if (operation === 'browser.download' && callInput.selector === undefined)
      throw invalidRequest([{ path: 'input.selector', message: 'is required with sessionId' }]);
    assertMayConnect(scopes);
    if (operation === 'browser.steps' && credentialsIn((callInput as InputOf<'browser.steps'>).steps).length > 0)
      throw fault('input_not_granted', 'Credentials can be typed only into a session that is created for the call.', {
        advice: 'Use url instead of sessionId.',
      });
    const [unusedName] = URL_ONLY_FIELDS.filter(name => rest[name] !== undefined);
    if (unusedName !== undefined)
      throw invalidRequest([{ path: `input.${unusedName}`, message: 'has no effect with sessionId; omit it' }]);
  }

  /** Prepares the call. Throws a `Fault` if the session for the call is refused. */
  async prepare(
    caller: AgentCaller,
    operation: BrowserOperationId,
    id: InvocationId,
    input: JsonObject,
    signal: AbortSignal,
  ): Promise<PreparedCall> {
    if (operation === 'browser.handoff') return this.#parts.handoffs.prepare(caller, id, input);
    const callSession = await this.#openCallSession(caller, id, input, signal);
    const { sessionId, recorded, isOwn, startedAt } = callSession;
    return {
      session: { id: sessionId, recorded, ...(isOwn ? { ownSessionSince: startedAt } : {}) },
      run: (row, signal) =>
        this.#hold(callSession, () => this.#run(caller, operation, input, { ...callSession, row, signal })),
      release: () => this.#release(caller, callSession),
    };
  }

  async #openCallSession(
    caller: AgentCaller,
    id: InvocationId,
    callInput: JsonObject,
    signal: AbortSignal,
  ): Promise<CallSession> {
    const input = callInput as AnyInput; // Validated against the schema of the operation.
    const { sessions, requestOf } = this.#parts;
    if (input.sessionId !== undefined) {
      const session = await sessions.read(caller, input.sessionId.toLowerCase());
      if (session.status !== 'RUNNING') throw sessionNotRunning(session.id, session.status);
      if (await this.#parts.isExclusive(caller, session.id as SessionId)) throw sessionExclusive(session.id);
      await this.#parts.handoffFollower.waitUntilReturned(session.id as SessionId, signal);
      const recorded = session.browserSettings?.recordSession !== false;
      return { sessionId: session.id as SessionId, isOwn: false, recorded, ...timesOf(session) };
    }
    const { steps = [] } = callInput as Partial<InputOf<'browser.steps'>>;
    const opened = await this.#parts.typing.open(caller.applicationId, steps);
    const options = { signal, isPaid: true, ...(opened ? { isExclusive: true as const } : {}) } as const;
    const { session } = await sessions.create(caller, requestOf(sessionBody(id, input)), options);
    const credentialsField = opened ? { opened } : {};
    return {
      sessionId: session.id as SessionId,
      isOwn: true,
      recorded: true,
      ...timesOf(session),
      ...credentialsField,
    };
  }

  /**
   * Runs the operation. Throws DriveFailed, or `handoff_claimed` if the driver failed because a person had taken
   * control.
   */
  async #run(
    caller: AgentCaller,
    operation: PageOperationId,
    callInput: JsonObject,
    runningCall: RunningCall,
  ): Promise<Outcome> {
    if (operation === 'browser.steps')
      return this.#runSteps(caller, callInput as InputOf<'browser.steps'>, runningCall);
    try {
      return await this.#capture(caller, operation, callInput, runningCall);
    } catch (error) {
      if (this.#parts.isDriveFailed(error)) this.#parts.handoffFollower.assertNotClaimed(runningCall.sessionId);
      throw error;
    }
  }

  /** Keeps a session that was not created for the call running until the call has ended. */
  async #hold<T>({ sessionId, isOwn }: CallSession, work: () => Promise<T>): Promise<T> {
    if (isOwn) return work();
    const sessionHold = this.#parts.holdSession(sessionId);
    try {
      return await work();
    } finally {
      sessionHold.close();
    }
  }

  #targetOf(caller: AgentCaller, { sessionId, isOwn, opened }: CallSession): DriverTarget {
    const { addressOf } = this.#parts;
    if (opened) return { session: EXCLUSIVE_TARGET_PREFIX + sessionId, address: addressOf(caller, sessionId, 'pass') };
    return { session: sessionId, address: addressOf(caller, sessionId, isOwn ? undefined : 'guest') };
  }

  async #capture(
    caller: AgentCaller,
    operation: CapturingOperationId,
    callInput: JsonObject,
    runningCall: RunningCall,
  ) {
    const { sessionId } = runningCall;
    const target = this.#targetOf(caller, runningCall);
    if (operation === 'browser.download') return this.#download(caller, target, callInput, runningCall);
    const capturedPage = await this.#runCapture(target, captureOf(operation, callInput));
    return { state: 'succeeded', ...(await this.#contentOf(operation, callInput, capturedPage, sessionId)) } as const;
  }

  async #runCapture(target: DriverTarget, capture: Capture): Promise<CapturedPage> {
    const { captured } = await this.#parts.driver.run(target, { do: 'capture', capture });
    if (!captured) throw new Error('the driver returned nothing for a capture');
    return captured;
  }

  async #download(
    caller: AgentCaller,
    target: DriverTarget,
    callInput: JsonObject,
    runningCall: RunningCall,
  ): Promise<Outcome> {
    const captureRequest = captureOf('browser.download', callInput);
    const downloadWait = this.#downloadWaitOf(runningCall, captureRequest.timeoutMs);
    const downloads = await this.#downloadsFrom(caller, runningCall);
    const { url, title, status } = await this.#runCapture(target, captureRequest);
    const downloadResult = await downloads.next(downloadWait);
    if ('failed' in downloadResult) return downloadFailed(downloadResult.failed);
    const pageFields = { url, title, ...(status === undefined ? {} : { status }) };
    return { state: 'succeeded', output: { downloads: [...downloadResult.files], ...pageFields } };
  }

  #downloadWaitOf({ sessionId, signal }: RunningCall, timeoutMs: number): DownloadWait {
    return { session: sessionId, untilMs: this.#parts.clock.monotonicMs() + timeoutMs, signal };
  }

  #downloadsFrom(caller: AgentCaller, { sessionId }: RunningCall): Promise<AwaitedDownloads> {
    const { downloads: rows, clock, sessions } = this.#parts;
    const assertRunning = async (id: SessionId): Promise<void> => {
      const { status } = await sessions.read(caller, id);
      if (status !== 'RUNNING') throw sessionNotRunning(id, status);
    };
    return AwaitedDownloads.from({ rows, clock, assertRunning }, sessionId);
  }

  /**
   * Runs the steps. If a step fails, the call ends as failed, but the earlier steps have taken effect. After any other
   * error, the effect is unknown.
   */
  async #runSteps(caller: AgentCaller, input: InputOf<'browser.steps'>, runningCall: RunningCall): Promise<Outcome> {
    const { isDriveFailed, typing } = this.#parts;
    const { sessionId, opened: openedCredentials, row } = runningCall;
    if (openedCredentials) typing.count(row, openedCredentials);
    const target = this.#targetOf(caller, runningCall);
    if (openedCredentials)
      typing.addSecret(sessionId, URL.parse(target.address)?.searchParams.get('pass') ?? target.address);
    try {
      const runResult = await this.#runStepGroups(target, caller, input, runningCall);
      if ('state' in runResult) return runResult;
      const cleanedOutcome = openedCredentials
        ? await typing.cleanOutcome(sessionId, runResult.stepsOutcome)
        : runResult.stepsOutcome;
      return { state: 'succeeded', ...stepsOutput(input.steps, cleanedOutcome, runResult) };
    } catch (error) {
      if (!isDriveFailed(error)) throw error;
      const failure = openedCredentials ? typing.cleanFailure(sessionId, error) : error;
      if (!STEP_FAILURES.has(failure.why)) throw failure;
      return this.#failedStep(sessionId, failure);
    }
  }

  /**
   * Runs the steps in groups. A group ends after a `handoff`, after a `download` (so that the service can wait for the
   * files), or after the last step.
   */
  async #runStepGroups(
    target: DriverTarget,
    caller: AgentCaller,
    input: InputOf<'browser.steps'>,
    runningCall: RunningCall,
  ) {
    const { driver, typing, clock } = this.#parts;
    const { sessionId, opened } = runningCall;
    const { url, timeoutMs, ...visit } = visitOf(input);
    const downloadWait = this.#downloadWaitOf(runningCall, timeoutMs);
    let { untilMs } = downloadWait;
    const downloads = input.steps.some(isDownload) ? await this.#downloadsFrom(caller, runningCall) : undefined;
    const pageHelper = opened ? typing.helper(sessionId, input.steps, opened) : undefined;
    const downloadsByStep = new Map<number, readonly JsonObject[]>();
    const handoffsByStep = new Map<number, HandoffRow>();
    const results: StepResult[] = [];
    let pageFields: Omit<StepsOutcome, 'results'> = { url: '', title: '' };
    for (const [index, group] of stepGroupsOf(input.steps).entries()) {
      const isFirst = index === 0;
      const remainingMs = isFirst ? timeoutMs : Math.max(1, Math.ceil(untilMs - clock.monotonicMs()));
      const visitOptions = { ...visit, ...(isFirst && url !== undefined ? { url } : {}), timeoutMs: remainingMs };
      const steps = { ...visitOptions, before: summaryOf(results), steps: group.steps.map(stepOf) };
      const { stepsOutcome } = await driver.run(target, { do: 'steps', steps }, pageHelper);
      if (!stepsOutcome) throw new Error('the driver returned nothing for steps');
      const { results: groupResults, ...currentFields } = stepsOutcome;
      pageFields = { ...pageFields, ...currentFields };
      results.push(...groupResults);
      if (group.handoff) {
        const requestedAtMs = clock.monotonicMs();
        const endedHandoff = await this.#parts.handoffs.step(caller, sessionId, group.handoff, runningCall.signal);
        // The time that the person takes does not count toward the time limit.
        untilMs += clock.monotonicMs() - requestedAtMs;
        const handoffFailure = handoffFailureOf(endedHandoff, results.length);
        if (handoffFailure) return handoffFailure;
        handoffsByStep.set(results.length, endedHandoff);
        results.push({ do: 'person' });
      }
      if (!downloads || !group.steps.some(isDownload)) continue;
      const downloadResult = await downloads.next({ ...downloadWait, untilMs });
      const clean = (text: string): string => (opened ? typing.cleanText(sessionId, text) : text);
      if ('failed' in downloadResult)
        return downloadFailed(
          { ...downloadResult.failed, message: clean(downloadResult.failed.message) },
          results.length - 1,
        );
      const cleanedFiles = downloadResult.files.map(file => ({ ...file, filename: clean(String(file.filename)) }));
      downloadsByStep.set(results.length - 1, cleanedFiles);
    }
    return { stepsOutcome: { ...pageFields, results }, downloadsByStep, handoffsByStep };
  }

  /**
   * Describes a failed step. `details.step` is the number of the step, counted from 0. It is absent if the page could
   * not be opened before the first step.
   */
  #failedStep(session: SessionId, { why, message, details }: DriveFailed): UnsuccessfulOutcome {
    const code = ERROR_CODES[why] ?? 'not_possible';
    const error: InvocationError = { code, message, retryable: false, phase: 'during', details };
    try {
      this.#parts.handoffFollower.assertNotClaimed(session);
      return { state: 'failed', error };
    } catch (claimedFault) {
      if (!isFault(claimedFault)) throw claimedFault;
      return { state: 'failed', error: { ...error, code: claimedFault.code } };
    }
  }

  /** Releases the session that was created for a call. Not an error if the session has ended. */
  async #release(caller: AgentCaller, { sessionId, isOwn }: Pick<CallSession, 'sessionId' | 'isOwn'>): Promise<void> {
    if (!isOwn) return;
    this.#parts.driver.forget(sessionId);
    this.#parts.driver.forget(EXCLUSIVE_TARGET_PREFIX + sessionId);
    await this.#parts.sessions.update(caller, sessionId, { status: 'REQUEST_RELEASE' });
  }

  /** Releases the sessions that an interrupted attempt did not release. */
  async releaseLeftoverSessions(caller: AgentCaller, id: InvocationId): Promise<void> {
    const query = {
      status: 'RUNNING',
      q: `user_metadata['${INVOCATION_METADATA}']:'${id}'`,
      limit: SESSIONS_PER_INVOCATION_MAX,
    };
    const { sessions } = await this.#parts.sessions.list(caller, query);
    for (const session of sessions)
      await this.#release(caller, { sessionId: session.id as SessionId, isOwn: true }).catch(() => {});
  }

  async #contentOf(
    operation: ProducingOperationId,
    callInput: JsonObject,
    { url, title, status, ...capturedContent }: CapturedPage,
    jobOwner: SessionId,
  ): Promise<ProducedContent> {
    const pageFields = { url, title, ...(status === undefined ? {} : { status }) };
    const {
      bytes,
      mimeType = 'application/octet-stream',
      width = 0,
      height = 0,
      pages,
      text = '',
      values = {},
    } = capturedContent;
    switch (operation) {
      case 'browser.screenshot':
        return { output: { ...pageFields, width, height }, file: fileOf(bytes, mimeType) };
      case 'browser.pdf':
        return { output: { ...pageFields, ...(pages === undefined ? {} : { pages }) }, file: fileOf(bytes, mimeType) };
      case 'browser.extract':
        return { output: { ...pageFields, fields: values } };
      case 'browser.content': {
        const { as = 'markdown', selector, maxBytes = CONTENT_BYTES_DEFAULT } = callInput as InputOf<'browser.content'>;
        const fullText =
          as === 'markdown'
            ? await this.#parts.toMarkdown({ html: text, url, isWhole: selector !== undefined }, jobOwner)
            : text;
        const content = firstBytes(fullText, maxBytes);
        return {
          output: {
            ...pageFields,
            content,
            truncated: capturedContent.isTruncated === true || content.length < fullText.length,
          },
        };
      }
    }
  }
}

const URL_ONLY_FIELDS = [
  ...(['viewport', 'contextId', 'proxies', 'allowedDomains', 'networkPolicy', 'userAgent', 'locale'] as const),
  ...(['timezoneId', 'waitUntil'] as const),
] as const;

const timesOf = ({ createdAt, startedAt }: SessionView) => ({
  ...{ createdAt: new Date(createdAt), startedAt: new Date(startedAt) },
});

/** Returns by how many seconds the hand-offs in the steps extend the lifetime of the session. */
export function handoffSeconds(input: object): number {
  const steps: readonly unknown[] = 'steps' in input && Array.isArray(input.steps) ? input.steps : [];
  const handoffSteps = steps.filter(isObject).filter(step => step.do === 'handoff');
  return handoffSteps.reduce(
    (sum, { ttlSeconds }) => sum + Number(ttlSeconds ?? TTL_SECONDS_DEFAULT) + STEP_HANDOFF_CONTROL_SECONDS,
    0,
  );
}

/** Returns the maximum lifetime, in seconds, of a session that is created for a call without hand-offs. */
export const sessionSeconds = (timeoutMs: number): number =>
  Math.max(SESSION_SECONDS_MIN, Math.ceil((Math.min(timeoutMs, OPERATION_TIMEOUT_MS_MAX) + SESSION_MARGIN_MS) / 1000));

function assertMayConnect(scopes: AgentCaller['scopes']): void {
  if (!scopes.has('browsers:connect')) throw scopeMissing(['browsers:connect']);
}

/**
 * Returns the create request for the session of a call. The request does not set `keepAlive`, so the session ends after
 * the driver has disconnected, even if the service is killed.
 */
function sessionBody(id: InvocationId, input: AnyInput): CreateSession {
  const { timeoutMs = TIMEOUT_MS_DEFAULT, viewport, contextId, proxies } = input;
  const { allowedDomains, networkPolicy, userAgent, locale, timezoneId } = input;
  const browserSettings = omitUndefined({ allowedDomains, networkPolicy, userAgent, locale, timezoneId, viewport });
  return {
    timeout: sessionSeconds(timeoutMs) + handoffSeconds(input),
    userMetadata: { [INVOCATION_METADATA]: id },
    ...omitUndefined({ contextId, proxies }),
    ...(Object.keys(browserSettings).length > 0 ? { browserSettings } : {}),
  };
}

const omitUndefined = <Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } =>
  // After the filter, no value is undefined.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;

/** Returns the page to open, if any, and how long to wait for it. */
function visitOf(input: AnyInput): Omit<Capture, 'wanted'> {
  const { url, waitUntil = 'load', timeoutMs = TIMEOUT_MS_DEFAULT, acceptStatus = [] } = input;
  const loadOptions = { waitUntil, timeoutMs, acceptStatus };
  return url === undefined ? loadOptions : { url, ...loadOptions };
}

const captureOf = (operation: CapturingOperationId, callInput: JsonObject): Capture => ({
  ...visitOf(callInput as AnyInput),
  wanted: wantedContentOf(operation, callInput),
});

const ERROR_CODES: Readonly<Partial<Record<DriveFailure, string>>> = {
  ...{ command: 'not_possible', page: 'page_failed', timeout: 'timeout', refused: 'input_not_granted' },
};
const STEP_FAILURES: ReadonlySet<string> = new Set(Object.keys(ERROR_CODES));

const isDownload = (step: GivenStep): boolean => step.do === 'download';

/** Summarizes the results of the parts of a call that have already run. */
const summaryOf = (results: readonly StepResult[]) => ({
  steps: results.length,
  bytes: results.reduce((sum, { bytes }) => sum + (bytes?.byteLength ?? 0), 0),
  hasTyped: results.some(({ do: step }) => step === 'type'),
});

/**
 * Describes the failure of a call whose downloads did not arrive. `step` is the number of the step, if the call has
 * steps.
 */
const downloadFailed = (
  { code, message }: Pick<InvocationError, 'code' | 'message'>,
  step?: number,
): UnsuccessfulOutcome => ({
  state: 'failed',
  error: {
    ...{ code, retryable: false, phase: 'during' },
    ...(step === undefined ? { message } : { message: `Step ${step} (download): ${message}`, details: { step } }),
  },
});

function wantedContentOf(operation: CapturingOperationId, callInput: JsonObject): WantedContent {
  switch (operation) {
    case 'browser.screenshot': {
      const input = callInput as InputOf<'browser.screenshot'>;
      const { fullPage = false, selector, format = 'png', quality = QUALITY_DEFAULT } = input;
      return { kind: 'screenshot', fullPage, format, quality, ...(selector === undefined ? {} : { selector }) };
    }
    case 'browser.pdf': {
      const { paper = 'A4', landscape = false, background = true, pages } = callInput as InputOf<'browser.pdf'>;
      return { kind: 'pdf', paper, landscape, background, ...(pages === undefined ? {} : { pages }) };
    }
    case 'browser.download': {
      const { selector } = callInput as InputOf<'browser.download'>;
      return { kind: 'download', ...(selector === undefined ? {} : { selector }) };
    }
    case 'browser.extract': {
      const { fields } = callInput as InputOf<'browser.extract'>;
      return { kind: 'fields', fields: wantedFields(fields) };
    }
    case 'browser.content': {
      const { as = 'markdown', selector } = callInput as InputOf<'browser.content'>;
      const kind = as === 'markdown' ? 'html' : as;
      return { kind, ...(selector === undefined ? {} : { selector }) };
    }
  }
}

const fileOf = (bytes: Uint8Array | undefined, mimeType: string) => {
  if (!bytes) throw new Error('the driver returned no file');
  return { bytes, mimeType };
};
