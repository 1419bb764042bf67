// A page that inspects its browser and reports the result to its server, without a client.
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Page } from './pages.ts';

const DOCUMENT_PATH = join(import.meta.dirname, '../../docs/what-pages-notice.md');

/** The checks, by line of docs/what-pages-notice.md. Each is the body of an async function. */
const CHECKS = {
  navigator: `
    const names = ['webdriver', 'userAgent', 'appVersion', 'platform', 'vendor', 'product', 'hardwareConcurrency', 'deviceMemory',
      'maxTouchPoints', 'cookieEnabled', 'doNotTrack'];
    const high = await navigator.userAgentData?.getHighEntropyValues(['architecture', 'bitness', 'model', 'platform', 'platformVersion', 'fullVersionList']);
    return [Object.fromEntries(names.map(name => [name, navigator[name]])), high];`,
  plugins: `return [...navigator.plugins].map(one => one.name).concat([...navigator.mimeTypes].map(one => one.type), navigator.pdfViewerEnabled);`,
  screen: `return ['width', 'height', 'availWidth', 'availHeight', 'colorDepth', 'isExtended'].map(name => screen[name])
    .concat(screen.orientation.type, innerWidth, innerHeight, outerWidth, devicePixelRatio, document.visibilityState);`,
  languages: `
    const answer = port => new Promise(done => { port.onmessage = ({ data }) => done(data); });
    const inSharedWorker = answer(new SharedWorker('/look-worker.js').port);
    await navigator.serviceWorker.register('/look-worker.js');
    const { active } = await navigator.serviceWorker.ready;
    const { port1, port2 } = new MessageChannel();
    active.postMessage('', [port2]);
    const workers = { 'shared worker': await inSharedWorker, 'service worker': await answer(port1) };
    return [navigator.language, ...navigator.languages, Intl.DateTimeFormat().resolvedOptions().locale, (1234.5).toLocaleString(), workers];`,
  'time zone': `return [Intl.DateTimeFormat().resolvedOptions().timeZone, new Date(2026, 6, 1).getTimezoneOffset()];`,
  permissions: `
    const names = ['geolocation', 'notifications', 'camera', 'microphone', 'clipboard-read', 'clipboard-write', 'midi', 'push',
      'persistent-storage', 'storage-access', 'local-fonts', 'window-management', 'background-sync', 'idle-detection'];
    const ask = name => navigator.permissions.query({ name, userVisibleOnly: true }).then(({ state }) => state, error => error.name);
    return [Notification.permission, ...(await Promise.all(names.map(async name => name + ' ' + (await ask(name)))))];`,
  'media devices': `return (await navigator.mediaDevices.enumerateDevices()).map(({ kind, label }) => kind + label);`,
  WebRTC: `
    const connection = new RTCPeerConnection({ iceServers: [] });
    const found = [];
    connection.onicecandidate = ({ candidate }) => candidate && found.push(candidate.type + ' ' + candidate.protocol);
    connection.createDataChannel('data');
    const gathered = new Promise(done => { connection.onicegatheringstatechange = () => connection.iceGatheringState === 'complete' && done(); });
    await connection.setLocalDescription(await connection.createOffer());
    await Promise.race([gathered, new Promise(done => setTimeout(done, 40_000))]);
    return [connection.iceGatheringState, ...found];`,
  console: `
    let reads = 0;
    const count = { get() { reads++; return 'read'; } };
    const error = Object.defineProperty(new Error('trap'), 'stack', count);
    const object = Object.defineProperty({}, 'member', { ...count, enumerable: true });
    const method = Object.assign(() => {}, { toString: () => { reads++; return 'read'; } });
    for (const name of ['debug', 'log', 'dir', 'table']) for (const trap of [error, object, method]) console[name](trap);
    await new Promise(done => setTimeout(done, 200));
    return [reads, console.log.toString(), new Error('here').stack.split('\\n').length];`,
  globals: `return [Object.getOwnPropertyNames(window).sort().join(), Object.keys(window.chrome ?? {}).join(), fetch.toString(), document.documentElement.outerHTML.length];`,
  'error pages': `
    const failed = await fetch('https://127.0.0.1:1/').then(({ status }) => status, error => error.name + ' ' + error.message);
    const frame = Object.assign(document.createElement('iframe'), { src: 'https://127.0.0.1:1/' });
    const loaded = new Promise(done => { frame.onload = () => done('load'); frame.onerror = () => done('error'); });
    document.body.append(frame);
    const seen = [failed, await loaded, frame.contentDocument === null];
    frame.remove();
    return seen;`,
  fonts: `
    const canvas = document.createElement('canvas').getContext('2d');
    const names = ['serif', 'sans-serif', 'monospace', 'cursive', 'fantasy', 'system-ui', 'Arial', 'Helvetica', 'Times New Roman', 'Courier New',
      'DejaVu Sans', 'Liberation Sans', 'Noto Sans', 'Noto Color Emoji', 'Segoe UI', 'Roboto', 'Ubuntu', 'Comic Sans MS', 'Georgia', 'Verdana'];
    return names.map(name => { canvas.font = '40px "' + name + '", monospace'; return name + ' ' + canvas.measureText('mmmmmmmmmlli \\u{1f600} \\u4e2d').width; });`,
  graphics: `
    const gl = document.createElement('canvas').getContext('webgl');
    const info = gl?.getExtension('WEBGL_debug_renderer_info');
    return [gl ? gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER) : 'none', typeof navigator.gpu];`,
  animations: `
    const tookLong = async (work, ms) => { const begun = performance.now(); await work(); return performance.now() - begun >= ms; };
    document.body.append(Object.assign(document.createElement('div'), { style: 'height: 9000px' }));
    const scrolled = new Promise(done => addEventListener('scrollend', done, { once: true }));
    const scroll = () => { scrollTo({ top: 5000, behavior: 'smooth' }); return scrolled; };
    // The limits are shorter than the durations, because on a busy machine the clock of a document is a frame or two
    // behind.
    return [await tookLong(() => document.body.animate([{ opacity: 0.9 }, { opacity: 1 }], 300).finished, 150),
      await tookLong(scroll, 150), scrollY, matchMedia('(prefers-reduced-motion: reduce)').matches];`,
} as const;

export type Observations = Readonly<Record<string, unknown>>;

const LOOK_PAGE = `<!doctype html><title>Look</title><body><script type="module">
  const looks = {${Object.entries(CHECKS)
    .map(([name, body]) => `${JSON.stringify(name)}: async () => {${body}}`)
    .join(',\n')}};
  const seen = {};
  for (const [name, look] of Object.entries(looks)) seen[name] = await look().catch(error => 'failed: ' + error);
  await fetch('/looked' + location.search, { method: 'POST', body: JSON.stringify(seen) });
</script>`;

/** The script of a shared worker and of a service worker. It reports its languages to each port that it receives. */
const LOOK_WORKER = `
  const languages = navigator.languages.join();
  onconnect = onmessage = ({ ports: [port] }) => port.postMessage(languages);`;

/**
 * Returns the pages, and a function that returns the results for the query of a page's URL: the reported values and the
 * request headers that the server received.
 */
export function createLookPages(): {
  pages: Readonly<Record<string, Page>>;
  observationsOf: (query: string) => Observations | undefined;
} {
  const headers = new Map<string, unknown>();
  const results = new Map<string, Observations>();
  const queryOf = (url = ''): string => url.split('?')[1] ?? '';
  const headersOf = ({ url, rawHeaders }: IncomingMessage): string[] =>
    rawHeaders.map((one, at) =>
      /^content-length$/i.test(rawHeaders[at - 1] ?? '') ? '' : one.replace(queryOf(url), ''),
    );
  return {
    pages: {
      '/look': (request, response) => {
        headers.set(queryOf(request.url), headersOf(request));
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
        response.end(LOOK_PAGE);
      },
      '/look-worker.js': (_, response) => {
        response.writeHead(200, { 'content-type': 'text/javascript' });
        response.end(LOOK_WORKER);
      },
      '/looked': async (request, response) => {
        const body = await text(request).catch(() => undefined);
        if (body === undefined) return void response.destroy(); // the browser ended during its request
        const report: unknown = JSON.parse(body);
        const requestHeaders = [headers.get(queryOf(request.url)), headersOf(request)];
        const observations = typeof report === 'object' ? report : {};
        results.set(queryOf(request.url), { ...observations, headers: requestHeaders });
        response.end();
      },
    },
    observationsOf: name => results.get(name),
  };
}

/** Returns the first column of the table in docs/what-pages-notice.md: the properties that pages can check. */
export function documentedChecks(): readonly string[] {
  const rows = readFileSync(DOCUMENT_PATH, 'utf8').split('| --- | --- |')[1] ?? '';
  return rows.split('\n').flatMap(row => row.split('|')[1]?.trim() ?? []);
}
