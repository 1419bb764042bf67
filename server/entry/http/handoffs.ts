// HTTP handlers for hand-offs.
import type { Handoffs, Opened, Shown } from '../../domain/handoffs/handoffs.ts';
import { isLoopback } from '../../kit/loopback.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export type HandoffVerbs = Pick<Handoffs, 'request' | 'list' | 'read' | 'claim' | 'renew' | 'complete' | 'cancel'>;

type HandoffInput = Pick<In<'readHandoff'>, 'caller' | 'bearer' | 'cookieNamed' | 'source' | 'params'>;

export interface LinkCookies {
  readonly publicUrl: string;
  /** Returns the origins whose pages may show hand-off pages of this application in a frame. */
  readonly frameAncestorsOf: (appId: string) => Promise<readonly string[]>;
}

const cookieOf = (id: string): string => `berth-handoff-${id}`;

const shown = ({ caller, bearer, cookieNamed, source, params }: HandoffInput): Shown => ({
  ...{ caller, source },
  ...{ bearer: caller ? undefined : bearer, browser: cookieNamed(cookieOf(params.id)) },
});

export const handoffHandlers = (handoffs: HandoffVerbs, cookies: LinkCookies) => ({
  requestHandoff: async ({ caller, params, body }: In<'requestHandoff'>): Promise<Answer> =>
    answer(await handoffs.request(caller, params.appId, body)),

  listHandoffs: async ({ caller, params, query }: In<'listHandoffs'>): Promise<Answer> =>
    answer(await handoffs.list(caller, params.appId, query)),

  readHandoff: async (asked: In<'readHandoff'>): Promise<Answer> => {
    const { params, query, signal } = asked;
    return opened(asked, await handoffs.read(shown(asked), params.appId, params.id, query.wait ?? 0, signal), cookies);
  },

  claimHandoff: async (asked: In<'claimHandoff'>): Promise<Answer> =>
    opened(asked, await handoffs.claim(shown(asked), asked.params.appId, asked.params.id), cookies),

  renewHandoff: async (asked: In<'renewHandoff'>): Promise<Answer> =>
    answer(await handoffs.renew(shown(asked), asked.params.appId, asked.params.id)),

  completeHandoff: async (asked: In<'completeHandoff'>): Promise<Answer> =>
    answer(await handoffs.complete(shown(asked), asked.params.appId, asked.params.id, asked.body)),

  cancelHandoff: async (asked: In<'cancelHandoff'>): Promise<Answer> =>
    answer(await handoffs.cancel(shown(asked), asked.params.appId, asked.params.id)),
});

/** The first browser that opens a claim link gets a cookie. From then on the link works only with this cookie. */
async function opened(
  { params: { appId, id } }: HandoffInput,
  { value, browser }: Opened<unknown>,
  { publicUrl, frameAncestorsOf }: LinkCookies,
): Promise<Answer> {
  if (!browser) return answer(value);
  const path = `/v1/applications/${appId}/handoffs/${id}`;
  const scope =
    (await frameAncestorsOf(appId)).length > 0 && isSafe(publicUrl) ? CROSS_SITE_ATTRIBUTES : sameSiteAttributes(publicUrl);
  const attributes = `Path=${path}; HttpOnly; ${scope}; Expires=${browser.until.toUTCString()}`;
  return answer(value, { 'set-cookie': `${cookieOf(id)}=${browser.secret.reveal()}; ${attributes}` });
}

/**
 * The attributes of cookies for a page in a frame of another site. In such a frame, a browser sends only cookies with
 * these attributes, and sends each of them only on the site on which it was set.
 */
const CROSS_SITE_ATTRIBUTES = 'SameSite=None; Secure; Partitioned';
const sameSiteAttributes = (publicUrl: string): string =>
  `SameSite=Strict${publicUrl.startsWith('https:') ? '; Secure' : ''}`;

/** Whether browsers accept a `Secure` cookie from this address, which they do from https and from loopback addresses. */
function isSafe(publicUrl: string): boolean {
  const url = URL.parse(publicUrl);
  return url !== null && (url.protocol === 'https:' || isLoopback(url.hostname));
}
