// The authenticated caller of a request. Created by callers.ts, read by every operation.

import type { Acr } from '../../../contract/sign-in.ts';
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type {
  AccountId,
  ApplicationId,
  ConsumerId,
  ConsumerSessionId,
  HumanSessionId,
  KeyId,
  TokenId,
} from '../../kit/ids.ts';

/** Where a request came from, for the audit log. */
export interface RequestSource {
  readonly ip: string;
  readonly userAgent?: string;
  /** Absent for connections that are not API requests. */
  readonly requestId?: string;
}

export interface AgentCaller {
  readonly kind: 'agentKey';
  readonly applicationId: ApplicationId;
  readonly keyId: KeyId;
  readonly scopes: ReadonlySet<string>;
  readonly source: RequestSource;
}

/** The caller that a key authenticates. */
export const agentCallerOf = (row: KeyRow): Omit<AgentCaller, 'source'> => ({
  kind: 'agentKey',
  applicationId: row.applicationId,
  keyId: row.id,
  scopes: new Set(row.scopes),
});

/** A personal access token, or a developer token, which a person approved for a device. */
export interface TokenProof {
  readonly kind: 'personal_token' | 'developer_token';
  readonly id: TokenId;
}

/** A human session: a person who signed in with a browser. */
export interface SessionProof {
  readonly kind: 'human_session';
  readonly id: HumanSessionId;
  /** When the person last proved who they are. */
  readonly authTime: Date;
  /** The strength of that proof. */
  readonly acr: Acr;
  /** The strongest proof that the account is able to give. */
  readonly strongestAcr: Acr;
}

export interface AccountCaller {
  readonly kind: 'account';
  readonly accountId: AccountId;
  /** The credential with which the account was authenticated. */
  readonly via: TokenProof | SessionProof;
  /** A human session has all scopes. They are limited by the role of the account. */
  readonly scopes: ReadonlySet<string>;
  /**
   * The applications that the token is restricted to. If absent, the caller may access every application that the
   * account is a member of.
   */
  readonly applicationIds?: ReadonlySet<ApplicationId>;
  /** Address ranges of the token. A token that is issued with this token cannot have wider ranges. */
  readonly cidrAllow: readonly string[];
  /** Expiry of the token. A token that is issued with this token cannot expire later. */
  readonly expiresAt?: Date;
  readonly source: RequestSource;
}

/** A person in a browser, for operations that no token may call. */
export type HumanCaller = AccountCaller & { readonly via: SessionProof };

/** An end user of an application, authenticated by a consumer session. */
export interface ConsumerCaller {
  readonly kind: 'consumer';
  readonly applicationId: ApplicationId;
  readonly providerId: string;
  readonly consumerId: ConsumerId;
  readonly via: {
    readonly kind: 'consumer_session';
    readonly id: ConsumerSessionId;
    readonly authTime: Date;
    readonly acr: Acr;
    /** The strongest proof that the consumer is able to give. */
    readonly strongestAcr: Acr;
    readonly expiresAt: Date;
  };
  /** Empty, because consumers have no scopes. */
  readonly scopes: ReadonlySet<string>;
  readonly source: RequestSource;
}

export type Caller = AgentCaller | AccountCaller | ConsumerCaller;

/** Returns the id of the token that authenticated the request. Undefined for a human session. */
export const tokenIdOf = ({ via }: AccountCaller): TokenId | undefined =>
  via.kind === 'human_session' ? undefined : via.id;
