// Sites that store a login everywhere a site can: cookies with and without an expiry, local storage, IndexedDB, the
// Cache API, and a service worker. Marks are written in one session and read in another.
import { type Browser, chromium, type Page } from 'playwright-core';
import type { Pages, Page as ServedPage } from './pages.ts';

export interface LoginMarks {
  readonly persistentCookie: string | undefined;
  readonly sessionCookie: string | undefined;
  readonly localStorage: string | undefined;
  readonly indexedDb: string | undefined;
  readonly cache: string | undefined;
  /** The response of a service worker that was registered in an earlier session. */
  readonly worker: string | undefined;
}

const cookieOf = (header: string | undefined, name: string): string | undefined =>
  header
    ?.split('; ')
    .find(pair => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1);

/** `/login?mark=M` sets cookies, `/whoami` returns them, and the worker in `/worker.js` answers `/from-worker`. */
export const LOGIN_PAGES: Readonly<Record<string, ServedPage>> = {
  '/login': (request, response) => {
    const mark = new URL(request.url ?? '/', 'http://x').searchParams.get('mark');
    response.setHeader('set-cookie', [
      `persistent=${mark}; Max-Age=86400; Path=/`,
      `session=${mark}; HttpOnly; Path=/`,
    ]);
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><title>In</title>');
  },
  '/whoami': (request, response) => {
    const { cookie } = request.headers;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ persistent: cookieOf(cookie, 'persistent'), session: cookieOf(cookie, 'session') }));
  },
  '/worker.js': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/javascript' });
    response.end(`self.addEventListener('activate', event => event.waitUntil(clients.claim()));
      self.addEventListener('fetch', event => {
        if (new URL(event.request.url).pathname === '/from-worker')
          event.respondWith(caches.open('marks').then(cache => cache.match('/mark')).then(found => found ?? new Response('none')));
      });`);
  },
};

/** A function that a page runs to store the mark. */
const LEAVE_MARKS_SCRIPT = `async mark => {
  localStorage.setItem('mark', mark);
  await new Promise((resolve, reject) => {
    const opening = indexedDB.open('marks', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('marks');
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const written = opening.result.transaction('marks', 'readwrite', { durability: 'strict' });
      written.objectStore('marks').put(mark, 'mark');
      written.oncomplete = () => { opening.result.close(); resolve(); };
    };
  });
  if (!isSecureContext) return;
  await (await caches.open('marks')).put('/mark', new Response(mark));
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
}`;

const FIND_MARKS_SCRIPT = `async () => {
  const indexedDb = await new Promise(resolve => {
    const opening = indexedDB.open('marks', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('marks');
    opening.onerror = () => resolve(undefined);
    opening.onsuccess = () => {
      const reading = opening.result.transaction('marks').objectStore('marks').get('mark');
      reading.onsuccess = () => { opening.result.close(); resolve(reading.result); };
    };
  });
  const found = isSecureContext ? await caches.match('/mark') : undefined;
  const registered = isSecureContext && await navigator.serviceWorker.getRegistration();
  const answered = registered ? await fetch('/from-worker') : undefined;
  return {
    localStorage: localStorage.getItem('mark') ?? undefined,
    indexedDb,
    cache: await found?.text(),
    worker: answered?.ok ? await answered.text() : undefined,
  };
}`;

/** Stores the mark in every kind of storage. A service worker is used only if the page is allowed to have one. */
export async function leaveMarks(page: Page, site: string, mark: string): Promise<void> {
  await page.goto(`${site}/login?mark=${mark}`);
  await page.evaluate(`(${LEAVE_MARKS_SCRIPT})(${JSON.stringify(mark)})`);
}

export async function findMarks(page: Page, site: string): Promise<LoginMarks> {
  await page.goto(`${site}/whoami`);
  const cookies = JSON.parse((await page.textContent('body')) ?? '{}');
  const storedMarks = (await page.evaluate(`(${FIND_MARKS_SCRIPT})()`)) as Omit<
    LoginMarks,
    'persistentCookie' | 'sessionCookie'
  >;
  return { persistentCookie: cookies.persistent, sessionCookie: cookies.session, ...storedMarks };
}

/** Returns a site that can store everything, and a site that cannot have a service worker. */
export const sitesOf = (pages: Pages): { secure: string; plain: string } => ({ secure: pages.url, plain: pages.a });

export const allMarks = (mark: string): LoginMarks => ({
  persistentCookie: mark,
  sessionCookie: mark,
  localStorage: mark,
  indexedDb: mark,
  cache: mark,
  worker: mark,
});

export const marksWithoutWorker = (mark: string): LoginMarks => ({
  ...allMarks(mark),
  cache: undefined,
  worker: undefined,
});

export async function runOnPage<T>(connectUrl: string, work: (page: Page, browser: Browser) => Promise<T>): Promise<T> {
  const browser = await chromium.connectOverCDP(connectUrl);
  try {
    const page = browser.contexts()[0]?.pages()[0];
    if (!page) throw new Error('the session has no first page');
    return await work(page, browser);
  } finally {
    await browser.close();
  }
}
