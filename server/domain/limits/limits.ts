// The limits resource of an application. An owner of the application configures the limits. Everyone who may read them
// also sees the current use.
import type {
  BrowserLimits,
  Limits as LimitsView,
  PartialBrowserLimits,
  ReplaceLimits,
} from '../../../contract/limits.ts';
import type { LimitsRow } from '../../engines/store/rows/limits.ts';
import type { SessionRows } from '../../engines/store/rows/sessions.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Audit } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { invalidRequest, notFound, preconditionFailed } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { revisionFrom } from '../identity/revisions.ts';
import { CREATES_WINDOW_MS } from './admission.ts';
import { configuredLimits, effectiveLimits, ineffectiveLimitIssues } from './browser-limits.ts';

export interface LimitsParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly store: Pick<Store, 'limits' | 'storedBytes' | 'atomically'> & {
    readonly sessions: Pick<SessionRows, 'countOf'>;
  };
  readonly applications: Pick<Applications, 'require'>;
  readonly audit: Pick<Audit, 'record'>;
  /** The operator's upper bounds, including the number of slots of the installation. */
  readonly ceiling: PartialBrowserLimits;
  readonly waitingOf: (application: ApplicationId) => Promise<number>;
  /** Called when a limit may have been raised, so that queued creates may be admitted. */
  readonly onChanged: () => void;
}

export class Limits {
  readonly #parts: LimitsParts;

  constructor(parts: LimitsParts) {
    this.#parts = parts;
  }

  async read(caller: AccountCaller, appId: string): Promise<LimitsView> {
    const { id } = await this.#parts.applications.require(caller, appId, 'read');
    return this.#view(await this.#row(id));
  }

  /** Replaces the limits. A limit below the current use prevents new sessions; running sessions continue. */
  async replace(
    caller: AccountCaller,
    appId: string,
    ifMatch: string | undefined,
    replacement: ReplaceLimits,
  ): Promise<LimitsView> {
    const { id } = await this.#parts.applications.require(caller, appId, 'limits');
    const { store, audit, clock, log, ceiling, onChanged: notifyChange } = this.#parts;
    const previousRow = await this.#row(id);
    const revision = revisionFrom(ifMatch, previousRow.revision);
    const issues = ineffectiveLimitIssues(
      replacement.browsers ?? {},
      configuredLimits(previousRow.configured),
      ceiling,
    );
    if (issues.length > 0) throw invalidRequest(issues);
    const configured = replacement.browsers ? { browsers: { ...replacement.browsers } } : {};
    const row = await store.atomically(async trx => {
      const row = await trx.limits.replace(id, revision, configured, clock.now());
      if (!row) throw preconditionFailed(previousRow.revision);
      const entry = {
        ...byCaller(caller),
        ...({ action: 'limits.changed', applicationId: id, outcome: 'success' } as const),
        details: {
          ...{ fields: Object.keys(replacement.browsers ?? {}), revision: row.revision },
          ...{ before: limitTextsOf(previousRow.configured), after: limitTextsOf(row.configured) },
        },
      };
      await audit.record(entry, trx);
      return row;
    });
    log.info('limits.changed', { applicationId: id, before: previousRow.configured, after: row.configured });
    notifyChange();
    return this.#view(row);
  }

  /** Returns the effective limits without checking whether a caller may read them. */
  async effective(id: ApplicationId): Promise<BrowserLimits> {
    const { configured } = await this.#row(id);
    return effectiveLimits(configuredLimits(configured), this.#parts.ceiling);
  }

  async #row(id: ApplicationId): Promise<LimitsRow> {
    const row = await this.#parts.store.limits.get(id);
    if (!row) throw notFound('Application', id);
    return row;
  }

  async #view({ applicationId, configured, revision }: LimitsRow): Promise<LimitsView> {
    const { store, clock, ceiling, waitingOf } = this.#parts;
    const now = clock.now();
    const [{ living, created, egressBytes }, maxStoredBytes, maxWaiting] = await Promise.all([
      store.sessions.countOf(applicationId, addMs(now, -CREATES_WINDOW_MS), now),
      store.storedBytes.ofApplication(applicationId),
      waitingOf(applicationId),
    ]);
    const browsers = configuredLimits(configured);
    return {
      configured: { browsers },
      effective: { browsers: effectiveLimits(browsers, ceiling) },
      usage: {
        browsers: {
          ...{ maxConcurrent: living, maxCreatesPerMinute: created, maxWaiting, maxStoredBytes },
          egressBytesPerDay: egressBytes,
        },
      },
      ceiling: { browsers: ceiling },
      revision,
    };
  }
}

/** The configured limits as strings, for example `maxConcurrent=3`. */
const limitTextsOf = ({ browsers }: JsonObject): string[] =>
  Object.entries(Object(browsers)).map(([name, value]) => `${name}=${value}`);
