// The live view of a session: its picture, and the hands of whoever takes control.
import type { DriveMessage, ServerMessage } from '../../contract/live-messages.ts';
import { Bar } from './bar.ts';
import { Connection } from './connection.ts';
import { linkDevtools } from './devtools.ts';
import { Downloads } from './downloads.ts';
import { type Doing, EXIT_KEY, Input } from './input.ts';
import { Overlays } from './overlays.ts';
import { parts } from './parts.ts';
import { PictureView } from './picture.ts';

const NOTICE_MS = 5_000;
/** What pages that embed a live view wait for; official clients know these words. */
const DISCONNECTED = 'browserbase-disconnected';

const asked = new URLSearchParams(location.search);
let right: 'view' | 'control' = 'view';
let who: 'you' | 'other' | 'agent' = 'agent';
let fence = 0;
let shown = '';
let noticeUntil: ReturnType<typeof setTimeout> | undefined;

const driving = (): boolean => who === 'you';
const drive = (doing: Doing): void => {
  if (driving()) connection.say({ ...doing, fence, page: shown } as DriveMessage); // `Doing` is that without these two
};

const view = new PictureView();
const overlays = new Overlays(view, drive, upload, tell);
const bar = new Bar({
  do: drive,
  look: page => {
    connection.say({ type: 'watch', page });
    if (driving()) connection.say({ type: 'front', fence, page });
  },
  close: page => connection.say({ type: 'close', fence, page }),
  newTab: () => connection.say({ type: 'newTab', fence }),
});
const downloads = new Downloads();
const input = new Input(view, driving, drive);
const connection = new Connection({
  message: hear,
  frame: (head, jpeg) => view.draw(head, jpeg),
  connection: state => {
    if (state === 'lost') tell('The connection was lost. Connecting again…', false);
    if (state === 'refused') tell('The live view cannot be opened. Its address may have expired.', false);
    if (state === 'open') tell('');
  },
});

parts.bar.hidden = asked.get('navbar') === 'false';
document.body.classList.toggle('bare', parts.bar.hidden);
parts.control.addEventListener('click', () => connection.say(driving() ? { type: 'give', fence } : { type: 'take' }));
parts.keyboard.addEventListener('click', () => input.focus());

function hear(message: ServerMessage): void {
  switch (message.type) {
    case 'welcome':
      right = message.right;
      return showControl();
    case 'tabs':
      return bar.tabs(message.tabs);
    case 'icon':
      return bar.icon(message.url, message.data);
    case 'page':
      shown = message.page;
      bar.page(message);
      linkDevtools(shown, right === 'control');
      if (driving()) overlays.show(message.dialog, message.select, message.files);
      return;
    case 'control':
      who = message.who;
      fence = message.fence;
      return showControl();
    case 'refused':
      return tell(message.why);
    case 'cursor':
      parts.canvas.style.cursor = message.cursor;
      return;
    case 'download':
      return downloads.offer(message);
    case 'copied':
      return void copied(message.text);
    case 'ended':
      who = 'agent';
      showControl();
      parts.controls.hidden = true;
      parts.devtools.hidden = true;
      tell(`The live view has ended: ${message.why}.`, false);
      // The words are all there is in it, and whoever embeds us may hear them.
      parent.postMessage(DISCONNECTED, '*');
      return;
  }
}

function showControl(): void {
  document.body.classList.toggle('driving', driving());
  parts.controls.hidden = right === 'view';
  parts.control.textContent = driving() ? 'Give back' : 'Take control';
  parts.keyboard.hidden = !driving() || hasKeyboard();
  parts.control.disabled = who === 'other';
  parts.state.textContent = {
    you: `You are in control. Input of the agent is held.${hasKeyboard() ? ` ${EXIT_KEY} leaves the page.` : ''}`,
    other: 'Another person is in control.',
    agent: 'The agent is in control.',
  }[who];
  bar.driving(driving());
  if (driving()) input.focus();
  else {
    parts.canvas.style.cursor = '';
    overlays.show(null, null, null);
  }
}

const hasKeyboard = (): boolean => !matchMedia('(pointer: coarse)').matches;

async function copied(text: string): Promise<void> {
  if (text === '') return;
  try {
    await navigator.clipboard.writeText(text);
    tell('Copied to your clipboard.');
  } catch {
    tell('The text could not be copied: this page has no permission to write to your clipboard.');
  }
}

async function upload(file: File): Promise<string> {
  const form = new FormData();
  form.set('file', file, file.name);
  const address = new URL(`${location.pathname.replace(/\/$/, '')}/files`, location.href);
  address.searchParams.set('token', asked.get('token') ?? '');
  const answer = await fetch(address, { method: 'POST', body: form });
  const body: { fileName?: string; message?: string } = await answer.json();
  if (!answer.ok || !body.fileName) throw new Error(body.message ?? 'The file could not be uploaded.');
  return body.fileName;
}

function tell(words: string, passing = true): void {
  clearTimeout(noticeUntil);
  parts.notice.textContent = words;
  if (passing && words !== '') noticeUntil = setTimeout(() => tell(''), NOTICE_MS);
}
