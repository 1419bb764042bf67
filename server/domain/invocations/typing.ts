// Types credentials into the pages of a call, and removes the typed text from the results of the call. The text is
// added to the secrets of the session before it is typed.
import type { DriveFailed, DriveFailure, Helper, HelpRequest, StepsOutcome } from '../../engines/driver/command.ts';
import type { TypingOutcome, TypingRequest } from '../../engines/recorder/type-text.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { SecretTexts } from '../../kit/secret-texts.ts';
import type { CallCredentials } from '../stored-credentials/call-credentials.ts';
import {
  type CredentialPart,
  credentialPartOf,
  type OpenedCredentials,
  partsIn,
  type TypedCredentials,
} from '../stored-credentials/typed-credentials.ts';
import type { GivenStep } from './browser-steps.ts';

/**
 * The methods of a session's recording that this file uses. `type` types text into a page. `cover` hides masked
 * content, such as the typed text, or shows it again.
 */
export interface TypingPage {
  type(typing: TypingRequest): Promise<TypingOutcome | undefined>;
  cover(shouldCover: boolean): Promise<boolean>;
}

export interface PageTypingParts {
  readonly credentials: Pick<TypedCredentials, 'open'>;
  readonly uses: Pick<CallCredentials, 'countUse'>;
  /** Undefined if the session has ended. */
  readonly pageOf: (session: SessionId) => TypingPage | undefined;
  readonly secretsOf: (session: SessionId) => SecretTexts | undefined;
  readonly failure: (why: DriveFailure, message: string, details?: Readonly<Record<string, string>>) => DriveFailed;
  readonly clean: (stepsOutcome: StepsOutcome, secrets: readonly string[], jobOwner: string) => Promise<StepsOutcome>;
  readonly log: Log;
}

/**
 * A user name that is shorter than this or consists only of letters is not redacted, because it may be an ordinary
 * word. Redacting ordinary words would make results unreadable.
 */
const REDACTED_NAME_CHARACTERS_MIN = 6;
const ONLY_LETTERS_PATTERN = /^\p{L}*$/u;
/** The driver cuts messages at this length. A message of this length may therefore end inside a secret. */
const MESSAGE_CHARACTERS_MAX = 2_000;

export class PageTyping {
  readonly #parts: PageTypingParts;

  constructor(parts: PageTypingParts) {
    this.#parts = parts;
  }

  /** Opens the credentials that the steps type. Undefined if the steps type none. Throws `credential_missing`. */
  async open(application: ApplicationId, steps: readonly GivenStep[]): Promise<OpenedCredentials | undefined> {
    const credentialParts = partsIn(steps);
    return credentialParts.length === 0 ? undefined : this.#parts.credentials.open(application, credentialParts);
  }

  /**
   * Returns the function that types credentials into the page, and hides or shows typed text, when the driver requests
   * it.
   */
  helper(session: SessionId, steps: readonly GivenStep[], openedCredentials: OpenedCredentials): Helper {
    return async help => {
      const page = this.#parts.pageOf(session);
      if (!page) throw this.#parts.failure('connection', 'The session has ended.');
      if (help.do === 'type') await this.#type(session, page, help, steps, openedCredentials);
      else if (!(await page.cover(help.do === 'cover'))) throw this.#parts.failure('command', NOT_HIDDEN_MESSAGE);
    };
  }

  /**
   * Adds a secret that is not typed into a page, such as the pass in the address of the driver's connection, to the
   * secrets of the session, so that errors do not contain it.
   */
  addSecret(session: SessionId, text: string): void {
    this.#parts.secretsOf(session)?.add(text);
  }

  /** Counts one use of each credential of a call. */
  count({ applicationId, operationId, keyId }: InvocationRow, { ids }: OpenedCredentials): void {
    const { uses, log } = this.#parts;
    for (const credentialId of ids)
      uses
        .countUse({ applicationId, operationId, keyId, credentialId })
        .catch(error => log.warn('credential.use_not_counted', { credentialId, reason: reason(error) }));
  }

  /** Removes the typed text from the results. */
  async cleanOutcome(session: SessionId, stepsOutcome: StepsOutcome): Promise<StepsOutcome> {
    const fileBytes = stepsOutcome.results.map(({ bytes }) => bytes);
    const textOutcome = { ...stepsOutcome, results: stepsOutcome.results.map(({ bytes: _, ...rest }) => rest) };
    const cleanedOutcome = await this.#parts.clean(textOutcome, this.#parts.secretsOf(session)?.all ?? [], session);
    const results = cleanedOutcome.results.map((result, index) => {
      const bytes = fileBytes[index];
      return bytes ? { ...result, bytes } : result;
    });
    return { ...cleanedOutcome, results };
  }

  cleanText(session: SessionId, text: string): string {
    return this.#parts.secretsOf(session)?.clean(text) ?? text;
  }

  cleanFailure(session: SessionId, { why, message, details }: DriveFailed): DriveFailed {
    const secrets = this.#parts.secretsOf(session);
    const clean = (text: string): string => secrets?.clean(text, text.length >= MESSAGE_CHARACTERS_MAX) ?? text;
    const cleanedDetails = Object.entries(details).map(([name, value]) => [
      name,
      typeof value === 'string' ? clean(value) : value,
    ]);
    return this.#parts.failure(why, clean(message), Object.fromEntries(cleanedDetails));
  }

  async #type(
    session: SessionId,
    page: TypingPage,
    { step, mark }: Extract<HelpRequest, { do: 'type' }>,
    steps: readonly GivenStep[],
    openedCredentials: OpenedCredentials,
  ): Promise<void> {
    const { failure, secretsOf } = this.#parts;
    const typingStep = steps[step];
    const part = typingStep && credentialPartOf(typingStep);
    const secrets = secretsOf(session);
    if (!part || !secrets) throw failure('connection', 'The session has ended.');
    const { text, origins } = openedCredentials.textOf(part);
    if (shouldRedact(part, text.reveal())) secrets.add(text.reveal());
    const outcome = await page.type({ mark, text: text.reveal(), origins });
    if (outcome?.is === 'typed') return;
    if (outcome?.is === 'refused')
      throw failure(
        'refused',
        `The credential ${part.credential} may not be typed into a page of ${outcome.origin}. Nothing was typed.`,
        {
          origin: outcome.origin,
        },
      );
    throw failure('command', outcome ? FIELD_PROBLEMS[outcome.is] : PAGE_REPLACED_MESSAGE);
  }
}

const shouldRedact = ({ part }: CredentialPart, text: string): boolean =>
  part !== 'username' || (text.length >= REDACTED_NAME_CHARACTERS_MIN && !ONLY_LETTERS_PATTERN.test(text));

const FIELD_PROBLEMS = {
  not_a_field: 'The element is not a text field, so no credential can be typed into it.',
  read_only: 'The field cannot be changed by a user, so no credential was typed into it.',
} as const;
const PAGE_REPLACED_MESSAGE = 'The page was replaced before anything was typed, or the field no longer exists.';
const NOT_HIDDEN_MESSAGE =
  'The page shows the typed text and does not allow it to be hidden, so no screenshot was taken.';
