// The live view of a session: shows the frames, and sends input while the viewer has control.
import type { DriveMessage, ServerMessage } from '../../contract/live-messages.ts';
import { Bar } from './bar.ts';
import { Connection } from './connection.ts';
import { linkDevtools } from './devtools.ts';
import { Downloads } from './downloads.ts';
import { OpenerNotice } from './followed.ts';
import { FrameView } from './frame-view.ts';
import { EXIT_KEY, Input, type InputMessage } from './input.ts';
import { Overlays } from './overlays.ts';
import { parts } from './parts.ts';

const NOTICE_DURATION_MS = 5_000;
/** Sent to the embedding page when the live view has ended. Official clients expect this name. */
const DISCONNECTED_MESSAGE = 'browserbase-disconnected';

const pageParams = new URLSearchParams(location.search);
let accessRight: 'view' | 'control' = 'view';
/** `unknown` while there is no connection. Any input would then be lost. */
let controlledBy: 'you' | 'other' | 'agent' | 'unknown' = 'unknown';
let hasDevtools = false;
let fence = 0;
let shownPage = '';
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

/** The types of input that have a position in the frame. */
const POINTER_TYPES: ReadonlySet<InputMessage['type']> = new Set(['mouse', 'wheel', 'touch']);

const hasControl = (): boolean => controlledBy === 'you';
const sendInput = (message: InputMessage): void => {
  // For a moment after another tab is selected, the frame still shows the previous page. Pointer input at that time was
  // meant for the previous page and is dropped.
  if (POINTER_TYPES.has(message.type) && view.page !== shownPage) return;
  // The cast is correct, because the object literal adds `fence` and `page`, which the message lacks.
  if (hasControl()) connection.send({ ...message, fence, page: shownPage } as DriveMessage);
};

const view = new FrameView();
const overlays = new Overlays(view, sendInput, upload, notify);
const watchPage = (page: string): void => {
  connection.send({ type: 'watch', page });
  if (hasControl()) connection.send({ type: 'front', fence, page });
};
const bar = new Bar({
  forwardInput: sendInput,
  selectTab: watchPage,
  closeTab: page => connection.send({ type: 'close', fence, page }),
  openNewTab: () => connection.send({ type: 'newTab', fence }),
});
const openerNotice = new OpenerNotice(page => bar.nameOf(page), watchPage);
const downloads = new Downloads();
const input = new Input(view, hasControl, sendInput);
const connection = new Connection({
  onMessage: receive,
  onFrame: (head, jpeg) => view.draw(head, jpeg),
  onStateChange: state => {
    if (state !== 'open') {
      controlledBy = 'unknown';
      showControl();
    }
    if (state === 'lost') notify('The connection was lost. Connecting again…', false);
    if (state === 'refused')
      notify('The live view could not be opened. Its address may have expired: ask for a new one.', false);
    if (state === 'open') notify('');
  },
});

parts.bar.hidden = pageParams.get('navbar') === 'false';
document.body.classList.toggle('bare', parts.bar.hidden);
parts.control.addEventListener('click', () =>
  connection.send(hasControl() ? { type: 'give', fence } : { type: 'take' }),
);
parts.keyboard.addEventListener('click', () => input.focus());

function receive(message: ServerMessage): void {
  switch (message.type) {
    case 'welcome':
      accessRight = message.right;
      hasDevtools = message.devtools;
      return showControl();
    case 'tabs':
      bar.setTabs(message.tabs);
      return openerNotice.draw();
    case 'icon':
      return bar.setIcon(message.url, message.data);
    case 'page':
      shownPage = message.page;
      bar.setPage(message);
      openerNotice.setPage(shownPage);
      linkDevtools(shownPage, hasDevtools);
      if (hasControl()) overlays.show(message.dialog, message.select, message.files);
      return;
    case 'control':
      controlledBy = message.who;
      fence = message.fence;
      return showControl();
    case 'refused':
      return notify(message.why);
    case 'opened':
      return openerNotice.setOpener(message.page, message.from);
    case 'returned':
      return notify(`The tab was closed. You are back in \u201c${bar.nameOf(message.page)}\u201d.`);
    case 'cursor':
      parts.canvas.style.cursor = message.cursor;
      return;
    case 'download':
      return downloads.offer(message);
    case 'copied':
      return void copyToClipboard(message.text);
    case 'ended':
      controlledBy = 'agent';
      showControl();
      parts.controls.hidden = true;
      parts.devtools.hidden = true;
      notify(`The live view has ended: ${message.why}.`, false);
      // The message contains no data, so it may be sent to any origin.
      parent.postMessage(DISCONNECTED_MESSAGE, '*');
      return;
  }
}

function showControl(): void {
  document.body.classList.toggle('in-control', hasControl());
  parts.controls.hidden = accessRight === 'view';
  parts.control.hidden = pageParams.get('controls') === 'false';
  parts.control.textContent = hasControl() ? 'Give back' : 'Take control';
  parts.keyboard.hidden = !hasControl() || hasKeyboard();
  parts.control.disabled = controlledBy === 'other' || controlledBy === 'unknown';
  parts.state.textContent = {
    you: `You are in control. Input from the agent is held.${hasKeyboard() ? ` Press ${EXIT_KEY} to leave the page.` : ''}`,
    other: 'Another person is in control.',
    agent: 'The agent is in control.',
    unknown: 'Connecting…',
  }[controlledBy];
  bar.setControl(hasControl());
  if (hasControl()) input.focus();
  else {
    parts.canvas.style.cursor = '';
    overlays.show(null, null, null);
  }
}

const hasKeyboard = (): boolean => !matchMedia('(pointer: coarse)').matches;

async function copyToClipboard(text: string): Promise<void> {
  if (text === '') return;
  try {
    await navigator.clipboard.writeText(text);
    notify('Copied to your clipboard.');
  } catch {
    notify('The text could not be copied: this page has no permission to write to your clipboard.');
  }
}

async function upload(file: File): Promise<string> {
  const form = new FormData();
  form.set('file', file, file.name);
  const address = new URL(`${location.pathname.replace(/\/$/, '')}/files`, location.href);
  address.searchParams.set('token', pageParams.get('token') ?? '');
  const response = await fetch(address, { method: 'POST', body: form });
  const body: { fileName?: string; message?: string } = await response.json();
  if (!response.ok || !body.fileName)
    throw new Error(body.message ?? 'The file could not be uploaded. Choose it again.');
  return body.fileName;
}

function notify(noticeText: string, isTemporary = true): void {
  clearTimeout(noticeTimer);
  parts.notice.textContent = noticeText;
  if (isTemporary && noticeText !== '') noticeTimer = setTimeout(() => notify(''), NOTICE_DURATION_MS);
}
