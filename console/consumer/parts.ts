// Functions that the pages of consumers share. They build elements without HTML, send commands, and apply the color of
// the application.

export const byId = (id: string): HTMLElement => {
  const foundElement = document.getElementById(id);
  if (!foundElement) throw new Error(`the page has no element with the id ${id}`);
  return foundElement;
};

export function build<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  fields: Partial<HTMLElementTagNameMap[Tag]> = {},
  ...children: ReadonlyArray<Node | string>
): HTMLElementTagNameMap[Tag] {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
}

/** A refusal by the service, with a message for people. */
export class CommandError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

interface RefusalBody {
  readonly code?: string;
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Sends a command of the consumer API. Throws a CommandError if the service refuses it. */
export async function sendCommand<Body>(
  appId: string,
  provider: string,
  name: string,
  body: object = {},
  read: (reply: Response) => Promise<Body> = readJson,
): Promise<Body> {
  const path = `/v1/consumer/applications/${appId}/providers/${provider}/${name}`;
  const reply = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (reply.ok) return read(reply);
  const refusalBody: RefusalBody = await reply.json().catch(() => ({}));
  const {
    code = 'internal',
    message = `The service responded with status ${reply.status}. Try again.`,
    details,
  } = refusalBody;
  throw new CommandError(reply.status, code, message, details);
}

/**
 * The body is not validated, because the contract defines its type. Returns an empty object for a response without a
 * body.
 */
const readJson = async <Body>(reply: Response): Promise<Body> => reply.json().catch(() => ({}) as Body);

export function showProblem(error: unknown): void {
  const problem = byId('problem');
  problem.textContent = error instanceof Error ? error.message : '';
  problem.hidden = error === undefined;
}

/** Runs the work of a form or button, and shows any error. The buttons are disabled while the work runs. */
export async function withDisabled(controls: Iterable<HTMLButtonElement>, work: () => Promise<void>): Promise<void> {
  showProblem(undefined);
  const buttons = [...controls];
  for (const one of buttons) one.disabled = true;
  try {
    await work();
  } catch (error) {
    showProblem(error);
  } finally {
    for (const one of buttons) one.disabled = false;
  }
}

const DARK_LUMINANCE_MAX = 0.4;

/** Uses the color of the application for buttons, with a readable text color. */
export function applyBrandColour(colour: string | undefined): void {
  const [, red, green, blue] = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(colour ?? '') ?? [];
  if (colour === undefined || red === undefined || green === undefined || blue === undefined) return;
  const linearize = (part: string): number => (Number.parseInt(part, 16) / 255) ** 2.2;
  const luminance = 0.2126 * linearize(red) + 0.7152 * linearize(green) + 0.0722 * linearize(blue);
  const { style } = document.documentElement;
  style.setProperty('--brand', colour);
  style.setProperty('--on-brand', luminance < DARK_LUMINANCE_MAX ? '#ffffff' : '#10191d');
}

export function setTitle(title: string, introduction = ''): void {
  byId('title').textContent = title;
  byId('title').hidden = title === '';
  byId('lead').textContent = introduction;
  byId('lead').hidden = introduction === '';
}

/** A button that is disabled while its work is running. */
export function button(text: string, work: () => Promise<void>, className = '', label = text): HTMLButtonElement {
  const buttonElement = build('button', { type: 'button', className }, text);
  if (label !== text) buttonElement.setAttribute('aria-label', label);
  buttonElement.addEventListener('click', () => void withDisabled([buttonElement], work));
  return buttonElement;
}

/** A button for work that cannot be undone. When it is pressed, it is replaced by a request for confirmation. */
export function confirmButton(text: string, confirmText: string, work: () => Promise<void>, label = text): HTMLElement {
  const box = build('div', { className: 'sure' });
  const openButton = build('button', { type: 'button', className: 'bad quiet' }, text);
  if (label !== text) openButton.setAttribute('aria-label', label);
  const ask = (): void => {
    const confirmingButton = button(confirmText, work, 'bad solid');
    const cancelButton = build('button', { type: 'button', className: 'quiet' }, 'Keep');
    cancelButton.addEventListener('click', () => {
      box.replaceChildren(openButton);
      openButton.focus();
    });
    box.replaceChildren(confirmingButton, cancelButton);
    confirmingButton.focus();
  };
  openButton.addEventListener('click', ask);
  box.append(openButton);
  return box;
}

const TODAY_FORMAT = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const THIS_YEAR_FORMAT = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
});
const FULL_FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** Omits the date for a time today, and the year for a time in this year. */
export function timeOf(text: string): HTMLTimeElement {
  const time = new Date(text);
  const now = new Date();
  const isThisYear = time.getFullYear() === now.getFullYear();
  const format =
    time.toDateString() === now.toDateString() ? TODAY_FORMAT : isThisYear ? THIS_YEAR_FORMAT : FULL_FORMAT;
  return build('time', { dateTime: text }, format.format(time));
}

/** If there are no items, `empty` is shown instead. */
export const listOf = (items: readonly HTMLElement[], empty: string): HTMLElement =>
  items.length === 0 ? build('p', { className: 'empty' }, empty) : build('ul', { className: 'plain' }, ...items);
