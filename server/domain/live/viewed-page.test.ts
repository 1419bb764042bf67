import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObservedTarget } from '../../engines/browser/observation.ts';
import { pollUntil } from '../../kit/wait.ts';
import { ViewedPage } from './viewed-page.ts';

const MOUSE_DOWN = {
  type: 'mouse',
  page: 'page',
  fence: 1,
  action: 'down',
  x: 1,
  y: 1,
  button: 'left',
  buttons: 1,
  clicks: 1,
  modifiers: 0,
} as const;

test('queues up to 1,000 inputs in order while the page has not responded to a mouse press', async () => {
  const response = Promise.withResolvers<object>();
  const sentTexts: string[] = [];
  const target = {
    id: 'page',
    on: () => ({ close: () => {} }),
    send: () => response.promise,
    post: (method: string, params: { text?: string } = {}) =>
      void (method === 'Input.insertText' && sentTexts.push(params.text ?? '')),
  } as unknown as ObservedTarget;
  const page = new ViewedPage({
    target,
    remoteFrames: () => new Map(),
    isCovered: () => false,
    onChanged: () => {},
    onTyping: () => {},
  });
  page.text('before');
  page.mouse(MOUSE_DOWN);
  for (let n = 0; n < 1_500; n++) page.text(String(n));
  assert.equal(await page.copy(false), '', 'a copy is empty at once if the queue is full');
  assert.deepEqual(sentTexts, ['before']);
  response.resolve({});
  await pollUntil(30_000, 'the queued inputs to be sent', () => sentTexts.length > 1_000 || undefined);
  assert.deepEqual(sentTexts, ['before', ...Array.from({ length: 1_000 }, (_, n) => String(n))]);
  page.close();
});

test('giving back control drops queued input, and whenInputSent resolves once the input in progress has been sent', async () => {
  const response = Promise.withResolvers<object>();
  const sentMethods: string[] = [];
  const target = {
    id: 'page',
    on: () => ({ close: () => {} }),
    send: (method: string) => {
      sentMethods.push(method);
      return response.promise;
    },
    post: (method: string) => void sentMethods.push(method),
  } as unknown as ObservedTarget;
  const page = new ViewedPage({
    target,
    remoteFrames: () => new Map(),
    isCovered: () => false,
    onChanged: () => {},
    onTyping: () => {},
  });
  page.mouse(MOUSE_DOWN);
  page.text('too late');
  const endedCalls: string[] = [];
  void page.copy(false).then(text => endedCalls.push(`copied '${text}'`));
  void page.whenInputSent().then(() => endedCalls.push('input sent'));
  page.setControlled(false);
  await new Promise(done => setImmediate(done));
  assert.deepEqual(endedCalls, ["copied ''"], 'the mouse press may still be sent');
  response.resolve({});
  await pollUntil(30_000, 'the wait for the input to end', () => endedCalls.includes('input sent') || undefined);
  assert.ok(sentMethods.includes('Input.dispatchMouseEvent'));
  assert.ok(
    !sentMethods.includes('Input.insertText') && !sentMethods.includes('Input.dispatchKeyEvent'),
    String(sentMethods),
  );
  page.close();
});

for (const when of ['before', 'after'] as const)
  test(`no select list remains if control is given back ${when} the list is shown, and the next press and release are sent`, async () => {
    const selectDescription = Promise.withResolvers<object>();
    const evaluateCall = Promise.withResolvers<void>();
    const mouseEventTypes: unknown[] = [];
    let foundElement: object = { objectId: 'select' };
    const responses: Record<string, () => Promise<object>> = {
      'Page.createIsolatedWorld': async () => ({ executionContextId: 1 }),
      'Runtime.evaluate': async () => {
        evaluateCall.resolve();
        return { result: foundElement };
      },
      'Runtime.callFunctionOn': () => selectDescription.promise,
    };
    const note = (method: string, { type }: { type?: string } = {}): void => {
      if (method === 'Input.dispatchMouseEvent') mouseEventTypes.push(type);
    };
    const target = {
      id: 'page',
      on: () => ({ close: () => {} }),
      send: async (method: string, params?: object) => {
        note(method, params);
        return (await responses[method]?.()) ?? {};
      },
      post: note,
    } as unknown as ObservedTarget;
    const page = new ViewedPage({
      target,
      remoteFrames: () => new Map(),
      isCovered: () => false,
      onChanged: () => {},
      onTyping: () => {},
    });
    page.setControlled(true);
    page.mouse(MOUSE_DOWN);
    await evaluateCall.promise;
    if (when === 'before') page.setControlled(false);
    selectDescription.resolve({ result: { value: { x: 0, y: 0, width: 9, height: 9, options: [] } } });
    await page.whenInputSent();
    if (when === 'after') {
      assert.ok(page.state.select);
      page.setControlled(false);
    }
    assert.equal(page.state.select, null);
    page.setControlled(true);
    foundElement = {};
    page.mouse(MOUSE_DOWN);
    page.mouse({ ...MOUSE_DOWN, action: 'up', buttons: 0 });
    await page.whenInputSent();
    assert.deepEqual(mouseEventTypes, ['mousePressed', 'mouseReleased']);
    page.close();
  });

test('reports input that may type text or begin another field, and no default answer of a dialog', async () => {
  const listeners: Array<(method: string, params: object) => void> = [];
  const sentMethods: string[] = [];
  const typingMethods: string[] = [];
  const target = {
    id: 'page',
    on: (listener: (method: string, params: object) => void) => {
      listeners.push(listener);
      return { close: () => {} };
    },
    send: async () => ({}),
    post: (method: string) => void sentMethods.push(method),
  } as unknown as ObservedTarget;
  const page = new ViewedPage({
    ...{ target, remoteFrames: () => new Map(), isCovered: () => false, onChanged: () => {} },
    onTyping: method => {
      assert.equal(sentMethods.at(-1), method, 'reported when it is sent');
      typingMethods.push(method);
    },
  });
  const openPrompt = (): void => {
    const prompt = { type: 'prompt', message: 'When?', defaultPrompt: '2026-11-28', hasBrowserHandler: false };
    for (const listener of listeners) listener('Page.javascriptDialogOpening', prompt);
  };
  const sentTo = { fence: 1, page: 'page' };
  const keyDetails = { keyCode: 65, location: 0, repeats: false, modifiers: 0, mac: false };
  page.key({ ...sentTo, type: 'key', action: 'down', key: 'a', code: 'KeyA', text: 'a', ...keyDetails });
  page.text('typed');
  page.compose({ ...sentTo, type: 'compose', text: 'composed', start: 8, end: 8 });
  page.touch({ ...sentTo, type: 'touch', action: 'start', points: [], modifiers: 0 });
  openPrompt();
  page.answerDialog(true, '2026-11-28');
  openPrompt();
  page.answerDialog(true, '2026-12-01');
  await page.whenInputSent();
  assert.deepEqual(typingMethods, [
    'Input.dispatchKeyEvent',
    'Input.insertText',
    'Input.imeSetComposition',
    'Input.dispatchTouchEvent',
    'Page.handleJavaScriptDialog',
  ]);
  page.close();
});
