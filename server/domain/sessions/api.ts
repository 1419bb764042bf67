// What the rest of the server may ask of the session domain, and the values it speaks in. sessions.ts keeps the promise.
import type { JsonObject, Warning } from '../../../contract/common.ts';
import type { ProjectUsage, Session } from '../../../contract/sessions.ts';
import type { AgentCaller } from '../identity/caller.ts';

/** A create body after validation: aliases merged, refusals made, defaults that are ours applied. */
export interface SessionWish {
  /** As the caller named it; the domain compares it with the key's application. */
  readonly projectId?: string;
  /** Seconds from creation. Absent: the default. */
  readonly timeout?: number;
  readonly keepAlive: boolean;
  /** One of our own regions. Absent: the default one. */
  readonly region?: string;
  /** A region name of official clients that is not ours; kept with the session for the compatibility mount. */
  readonly regionAsked?: string;
  readonly userMetadata: JsonObject;
  readonly settings: WishedSettings;
  /** Begin the answer's `warnings`; the domain adds its own behind them. */
  readonly warnings: readonly Warning[];
}

/** Known settings that were given, as given. One without an effect has its warning. */
export interface WishedSettings {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly recordSession?: boolean;
  readonly logSession?: boolean;
  readonly ignoreCertificateErrors?: boolean;
  readonly blockAds?: boolean;
  readonly enablePdfViewer?: boolean;
  readonly timezoneId?: string;
  readonly locale?: string;
  readonly userAgent?: string;
  readonly geolocation?: { readonly latitude: number; readonly longitude: number; readonly accuracy?: number };
  readonly maskInputs?: 'password' | 'all' | 'none';
  readonly egressBytes?: number;
  readonly takeover?: 'queue' | 'refuse';
}

/** A session as the contract shows it. Connect fields are there only where this caller may see them. */
export type SessionView = Session & {
  /** `SessionWish.regionAsked` of its create. Never answered under this name. */
  readonly regionAsked?: string;
};

export interface SessionListQuery {
  readonly status?: string;
  readonly q?: string;
  readonly limit?: number;
  readonly before?: string;
}

export interface SessionChange {
  readonly projectId?: string;
  readonly status?: 'REQUEST_RELEASE';
  readonly userMetadata?: JsonObject;
  readonly timeout?: number;
}

export interface Sessions {
  /** `warnings` is the whole list: those of the wish, then the domain's own. The signal is for the log only: a session whose caller left stays. */
  create(
    caller: AgentCaller,
    wish: SessionWish,
    asked: { readonly signal: AbortSignal },
  ): Promise<{ session: SessionView; warnings: readonly Warning[] }>;
  list(caller: AgentCaller, query: SessionListQuery): Promise<{ sessions: SessionView[]; nextBefore?: string }>;
  read(caller: AgentCaller, id: string): Promise<SessionView>;
  update(caller: AgentCaller, id: string, change: SessionChange): Promise<SessionView>;
  usage(caller: AgentCaller): Promise<ProjectUsage>;
}
