// The view of a session that a link opens: a tab and, in the replay, a page and a time.

export interface SessionView {
  readonly tab?: string;
  /** Number of a recorded page. */
  readonly page?: string;
  /** The moment in the replay of the page, in seconds. */
  readonly at?: number;
}

export function readSessionView({ tab, page, at }: Record<string, unknown>): SessionView {
  const seconds = Number(at);
  return {
    ...(typeof tab === 'string' ? { tab } : {}),
    ...(PAGE.test(String(page)) ? { page: String(page) } : {}),
    ...(at !== undefined && Number.isFinite(seconds) && seconds >= 0 ? { at: seconds } : {}),
  };
}

/**
 * The pattern of a page number as a string. The router parses page numbers in the address as numbers, so they are
 * converted to strings first.
 */
const PAGE = /^\d{1,3}$/;

/** Returns a link to the session page that is open, with the replay of the recorded page at this moment. */
export function linkTo(page: string, seconds: number): string {
  const url = new URL(location.href);
  url.search = new URLSearchParams({ tab: 'replay', page, at: seconds.toFixed(1) }).toString();
  return url.href;
}
