// A hostile page: console output, navigations, requests, dialogs, downloads and workers.
import { CdpClient } from '../../harness/cdp.ts';
import { withTimeLimit } from '../../harness/until.ts';
import type { HostileValues } from '../hostile.ts';
import { hostileResponse } from '../hostile-web.ts';
import { type Fixture, withSession } from '../world.ts';

const RESPONSE_TIMEOUT_MS = 10_000;

export async function attackFromPages(world: Fixture, hostile: HostileValues, count: number): Promise<void> {
  await withSession(world, async session => {
    const client = await CdpClient.connect(session.connectUrl);
    const page = await client.attachToPage();
    client.onMessage(({ method, sessionId }) => {
      if (method === 'Page.javascriptDialogOpening')
        void client.ask('Page.handleJavaScriptDialog', { accept: true, promptText: hostile.text() }, sessionId);
    });
    await client.send('Page.enable', {}, page);
    await client.send('Runtime.enable', {}, page);
    await client.visit(world.pages.a, page);
    for (let n = 0; n < count && client.isOpen; n++) {
      const expression = hostile.chance(6) ? undefined : pageAction(world, hostile);
      const [method, params] = expression
        ? (['Runtime.evaluate', { expression, userGesture: true }] as const)
        : (['Page.navigate', { url: world.web.serve(hostileResponse(hostile)) }] as const);
      world.notes.note(`${method} ${expression ?? ''}`);
      // The page may hang or be closed. The next action follows in any case.
      await withTimeLimit(method, client.ask(method, params, page), RESPONSE_TIMEOUT_MS).catch(() => {});
      if (!expression && hostile.chance(3)) await client.ask('Page.navigate', { url: `${world.pages.a}/` }, page);
    }
    client.cut();
  });
}

const literal = (value: unknown): string => JSON.stringify(value) ?? 'undefined';

/** One action of a page, as an expression. */
function pageAction({ web, pages }: Fixture, hostile: HostileValues): string {
  const text = literal(hostile.text());
  const value = hostile.json(hostile.value());
  const js = `JSON.parse(${literal(value)})`;
  const catchErrors = (code: string): string =>
    `(() => { try { return void (${code}) } catch (error) { console.error(error) } })()`;
  const url = hostile.chance(2) ? literal(hostile.url()) : literal(web.serve(hostileResponse(hostile)));
  return catchErrors(
    hostile.pick([
      `console.${hostile.pick(['log', 'warn', 'error', 'table', 'group', 'dir', 'debug', 'trace', 'timeLog'])}(${text}, ${js})`,
      `console.log('%s%o%c%d', ${text}, ${js}, ${text})`,
      `console.log('http://a/?u=' + ${text} + '&token=x')`,
      `history.pushState(${js}, ${text}, '/' + ${text})`,
      `history.pushState(null, '', '/?u=' + ${text})`,
      `document.title = ${text}`,
      `document.body.append(Object.assign(document.createElement('iframe'), { srcdoc: ${text}, name: ${text} }))`,
      `fetch(${url}, { method: 'POST', body: ${text} }).catch(() => {})`,
      `fetch(${literal(pages.a)} + '/echo?' + ${text}, { headers: { 'x-hostile': encodeURIComponent(${text}) } }).catch(() => {})`,
      `fetch(${literal(pages.a)} + '/redirect?token=' + ${text}).catch(() => {})`,
      `Object.assign(new Image(), { src: ${url} })`,
      `open(${url}, ${text})`,
      `alert(${text})`,
      `prompt(${text}, ${text})`,
      `Promise.reject(Object.assign(new Error(${text}), { name: ${text}, stack: ${text} }))`,
      `setTimeout(() => { throw ${js} })`,
      `new Worker(URL.createObjectURL(new Blob(['console.log(' + ${literal(text)} + '); throw ' + ${literal(text)}])), { name: ${text} })`,
      `new SharedWorker(URL.createObjectURL(new Blob(['console.log(' + ${literal(text)} + ')'])), ${text})`,
      `Object.assign(document.createElement('a'), { href: URL.createObjectURL(new Blob([${text}])), download: ${text} }).click()`,
      `Object.assign(document.createElement('a'), { href: ${url}, download: ${text} }).click()`,
      `document.cookie = ${text}`,
      `localStorage.setItem(${text}, ${text})`,
      `new WebSocket('ws://a.test:${pages.port}/ws?' + encodeURIComponent(${text})).addEventListener('open', e => e.target.send(${text}))`,
      `performance.mark(${text})`,
      `window.name = ${text}`,
      `location.hash = ${text}`,
      `document.head.append(Object.assign(document.createElement('link'), { rel: 'icon', href: ${url} }))`,
      `eval('//# sourceURL=' + ${text} + '\\nconsole.log(1)')`,
    ]),
  );
}
