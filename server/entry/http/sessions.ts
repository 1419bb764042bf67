// Handlers of sessions, on both mounts. The compatibility mount differs in the region it names and in a repeated release.
import type { Warning } from '../../../contract/common.ts';
import { FOREIGN_REGIONS, type Session, type UpdateSession } from '../../../contract/sessions.ts';
import type { AgentCaller } from '../../domain/identity/caller.ts';
import type { Sessions, SessionView } from '../../domain/sessions/api.ts';
import { isFault } from '../../kit/fault.ts';
import { type Answer, answer } from './answer.ts';
import type { In, MountName } from './bind.ts';
import { normaliseCreate } from './normalise-create.ts';

/** What official clients call a region that has no name of theirs. */
const FOREIGN_REGION_DEFAULT = 'us-west-2';

export const sessionHandlers = (sessions: Sessions, regions: readonly string[]) => ({
  createSession: async ({ caller, body, mount, warnings, signal }: In<'createSession'>): Promise<Answer> => {
    const wish = normaliseCreate(body, { mount, regions });
    const created = await sessions.create(caller, { ...wish, warnings: [...warnings, ...wish.warnings] }, { signal });
    const { session } = created;
    return answer(
      { ...shown(session, mount), warnings: created.warnings },
      { location: `/v1/browsers/sessions/${session.id}` },
    );
  },

  listSessions: async ({ caller, query, mount }: In<'listSessions'>): Promise<Answer> => {
    const page = await sessions.list(caller, query);
    return answer(
      page.sessions.map(session => shown(session, mount)),
      page.nextBefore === undefined ? {} : { 'x-next-before': page.nextBefore },
    );
  },

  readSession: async ({ caller, params, mount }: In<'readSession'>): Promise<Answer> =>
    answer(shown(await sessions.read(caller, params.id), mount)),

  updateSession: async ({ caller, params, body, mount, warnings }: In<'updateSession'>): Promise<Answer> => {
    const session =
      mount === 'compat'
        ? await releaseAgain(sessions, caller, params.id, body)
        : await sessions.update(caller, params.id, body);
    return answer(withWarnings(shown(session, mount), warnings));
  },
});

/** On the compatibility mount the release of an ended session succeeds: official clients resend it, and throw if it fails. */
export async function releaseAgain(
  sessions: Sessions,
  caller: AgentCaller,
  id: string,
  change: UpdateSession,
): Promise<SessionView> {
  try {
    return await sessions.update(caller, id, change);
  } catch (error) {
    if (change.status !== 'REQUEST_RELEASE' || !isFault(error, 'session_not_running')) throw error;
    return sessions.read(caller, id);
  }
}

/** The session as this mount shows it. */
export function shown({ regionAsked, ...session }: SessionView, mount: MountName): Session {
  if (mount === 'native' || isForeign(session.region)) return session;
  return { ...session, region: regionAsked ?? FOREIGN_REGION_DEFAULT };
}

const isForeign = (region: string): boolean => FOREIGN_REGIONS.some(foreign => foreign === region);

const withWarnings = (session: Session, warnings: readonly Warning[]): Session =>
  warnings.length === 0 ? session : { ...session, warnings: [...warnings] };
