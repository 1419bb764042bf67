// HTTP handlers for hand-offs.
import type { HandoffResult, Handoffs, PresentedCredentials } from '../../domain/handoffs/handoffs.ts';
import { isLoopback } from '../../kit/loopback.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export type HandoffMethods = Pick<Handoffs, 'request' | 'list' | 'read' | 'claim' | 'renew' | 'complete' | 'cancel'>;

type HandoffInput = Pick<HandlerInput<'readHandoff'>, 'caller' | 'bearer' | 'cookieNamed' | 'source' | 'params'>;

export interface LinkCookieParts {
  readonly publicUrl: string;
  /** Returns the origins whose pages may show hand-off pages of this application in a frame. */
  readonly frameAncestorsOf: (appId: string) => Promise<readonly string[]>;
}

const cookieOf = (id: string): string => `berth-handoff-${id}`;

const credentialsOf = ({ caller, bearer, cookieNamed, source, params }: HandoffInput): PresentedCredentials => ({
  ...{ caller, source },
  ...{ bearer: caller ? undefined : bearer, browserCookie: cookieNamed(cookieOf(params.id)) },
});

export const handoffHandlers = (handoffs: HandoffMethods, cookies: LinkCookieParts) => ({
  requestHandoff: async ({ caller, params, body }: HandlerInput<'requestHandoff'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.request(caller, params.appId, body)),

  listHandoffs: async ({ caller, params, query }: HandlerInput<'listHandoffs'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.list(caller, params.appId, query)),

  readHandoff: async (input: HandlerInput<'readHandoff'>): Promise<HttpResponse> => {
    const { params, query, signal } = input;
    return openingResponse(
      input,
      await handoffs.read(credentialsOf(input), params.appId, params.id, query.wait ?? 0, signal),
      cookies,
    );
  },

  claimHandoff: async (input: HandlerInput<'claimHandoff'>): Promise<HttpResponse> =>
    openingResponse(input, await handoffs.claim(credentialsOf(input), input.params.appId, input.params.id), cookies),

  renewHandoff: async (input: HandlerInput<'renewHandoff'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.renew(credentialsOf(input), input.params.appId, input.params.id)),

  completeHandoff: async (input: HandlerInput<'completeHandoff'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.complete(credentialsOf(input), input.params.appId, input.params.id, input.body)),

  cancelHandoff: async (input: HandlerInput<'cancelHandoff'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.cancel(credentialsOf(input), input.params.appId, input.params.id)),
});

/** The first browser that opens a claim link gets a cookie. From then on the link works only with this cookie. */
async function openingResponse(
  { params: { appId, id } }: HandoffInput,
  { value, browserCookie }: HandoffResult<unknown>,
  { publicUrl, frameAncestorsOf }: LinkCookieParts,
): Promise<HttpResponse> {
  if (!browserCookie) return jsonResponse(value);
  const path = `/v1/applications/${appId}/handoffs/${id}`;
  const siteAttributes =
    (await frameAncestorsOf(appId)).length > 0 && acceptsSecureCookies(publicUrl)
      ? CROSS_SITE_ATTRIBUTES
      : sameSiteAttributes(publicUrl);
  const attributes = `Path=${path}; HttpOnly; ${siteAttributes}; Expires=${browserCookie.until.toUTCString()}`;
  return jsonResponse(value, { 'set-cookie': `${cookieOf(id)}=${browserCookie.secret.reveal()}; ${attributes}` });
}

/**
 * The attributes of cookies for a page that another site shows in a frame. In such a frame, a browser sends only
 * cookies with these attributes, and sends each of them only under the top-level site under which it was set.
 */
const CROSS_SITE_ATTRIBUTES = 'SameSite=None; Secure; Partitioned';
const sameSiteAttributes = (publicUrl: string): string =>
  `SameSite=Strict${publicUrl.startsWith('https:') ? '; Secure' : ''}`;

/** Whether browsers accept a `Secure` cookie from this address. They do so from https and from loopback addresses. */
function acceptsSecureCookies(publicUrl: string): boolean {
  const url = URL.parse(publicUrl);
  return url !== null && (url.protocol === 'https:' || isLoopback(url.hostname));
}
