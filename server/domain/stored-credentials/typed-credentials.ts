// Credentials that the service types into pages for a call: which ones the steps name, whether they can be typed, and
// their values with the origins where each may be typed.
import type { Issue } from '../../../contract/common.ts';
import type { CredentialValue } from '../../../contract/stored-credentials.ts';
import type { StoredCredentialRows, StoredCredentialWithVersion } from '../../engines/store/rows/stored-credentials.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { credentialMissing } from './call-credentials.ts';
import type { ValueSeal } from './stored-credentials.ts';

/** A part of a credential that can be typed as text. */
export interface CredentialPart {
  readonly credential: string;
  readonly part: 'username' | 'password' | 'totp';
}

/** The fields of a `fill` step that specify the typed text. */
interface FillStep {
  readonly do: string;
  readonly value?: unknown;
  readonly credential?: string;
  readonly field?: 'username' | 'password';
  readonly totp?: string;
}

export const credentialPartOf = ({ credential, field, totp }: FillStep): CredentialPart | undefined => {
  if (credential !== undefined && field !== undefined) return { credential, part: field };
  return totp === undefined ? undefined : { credential: totp, part: 'totp' };
};

export const partsIn = (steps: readonly FillStep[]): readonly CredentialPart[] =>
  steps.flatMap(step => (step.do === 'fill' ? (credentialPartOf(step) ?? []) : []));

export const credentialsIn = (steps: readonly FillStep[]): readonly string[] => [
  ...new Set(partsIn(steps).map(({ credential }) => credential)),
];

/**
 * Checks that a `fill` step has exactly one source of the text: a value, a credential with a field, or a one-time code.
 */
export function fillIssues(step: FillStep, path: string): Issue[] {
  const { value, credential, field, totp } = step;
  if (step.do !== 'fill') return [];
  const sourceCount = [value, credential ?? field, totp].filter(way => way !== undefined).length;
  if (sourceCount === 0)
    return [
      {
        path: `${path}.value`,
        message: 'is required for fill, unless either totp, or both credential and field, are given',
      },
    ];
  if (sourceCount > 1)
    return [{ path, message: 'requires exactly one of these: value, totp, or both credential and field' }];
  if (credential === undefined && field !== undefined)
    return [{ path: `${path}.credential`, message: 'is required with field' }];
  if (credential !== undefined && field === undefined)
    return [{ path: `${path}.field`, message: 'is required with credential' }];
  return [];
}

/** The credentials that a call may type, with their values at the time of `open`. */
export interface OpenedCredentials {
  readonly ids: readonly string[];
  textOf(part: CredentialPart): TypedText;
}

export interface TypedText {
  readonly text: Secret;
  /** The document that contains the field, and all its ancestor documents, must have one of these origins. */
  readonly origins: readonly string[];
}

export interface TypedCredentialsParts {
  readonly rows: Pick<StoredCredentialRows, 'get'>;
  readonly seal: Pick<ValueSeal, 'open'>;
  /** Returns the one-time code for a base32 seed. Throws if the seed is not valid. */
  readonly codeOf: (seed: Secret, now: Date) => Secret;
  readonly clock: Clock;
}

export class TypedCredentials {
  readonly #parts: TypedCredentialsParts;

  constructor(parts: TypedCredentialsParts) {
    this.#parts = parts;
  }

  /** A description of why these credentials cannot be typed, or undefined. */
  async findProblem(application: ApplicationId, ids: readonly string[]): Promise<string | undefined> {
    for (const id of ids) {
      const problem = this.#problemOf(id, await this.#parts.rows.get(application, id));
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  /** @throws Fault `credential_missing` */
  async open(application: ApplicationId, credentialParts: readonly CredentialPart[]): Promise<OpenedCredentials> {
    const { rows, seal, codeOf, clock } = this.#parts;
    const credentialsById = new Map<string, { readonly value: CredentialValue; readonly origins: readonly string[] }>();
    for (const { credential: id, part } of credentialParts) {
      const row = credentialsById.has(id) ? undefined : await rows.get(application, id);
      const problem = credentialsById.has(id) ? undefined : this.#problemOf(id, row);
      if (problem !== undefined) throw credentialMissing(problem);
      if (row)
        credentialsById.set(id, {
          value: await seal.open(row.current, row.current.sealed),
          origins: row.current.origins,
        });
      if (part !== 'totp') continue;
      const { totpSeed } = credentialsById.get(id)?.value ?? {};
      if (totpSeed === undefined || !canMakeCode(() => codeOf(new Secret(totpSeed), clock.now())))
        throw credentialMissing(`requires a one-time code of the credential ${id}, which has no usable totpSeed`);
    }
    return {
      ids: [...credentialsById.keys()],
      textOf: ({ credential, part }) => {
        const { value, origins } = credentialsById.get(credential) ?? { value: {}, origins: [] };
        const { username = '', password = '', totpSeed = '' } = value;
        const text = part === 'totp' ? codeOf(new Secret(totpSeed), clock.now()) : undefined;
        return { text: text ?? new Secret(part === 'password' ? password : username), origins };
      },
    };
  }

  #problemOf(id: string, row: StoredCredentialWithVersion | undefined): string | undefined {
    if (!row) return `names the credential ${id}, which does not exist`;
    if (row.current.type !== 'login') return `names the credential ${id}, which is not a login and is never typed`;
    if (row.current.expiresAt && row.current.expiresAt <= this.#parts.clock.now())
      return `names the credential ${id}, which has expired`;
    return undefined;
  }
}

function canMakeCode(code: () => Secret): boolean {
  try {
    return code().reveal() !== '';
  } catch {
    return false;
  }
}
