// What the pages of consumers share: building elements without HTML, sending commands, the colour of the application.

export const byId = (id: string): HTMLElement => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
};

export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  fields: Partial<HTMLElementTagNameMap[Tag]> = {},
  ...children: ReadonlyArray<Node | string>
): HTMLElementTagNameMap[Tag] {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
}

/** A refusal of the service, with the sentence for people. */
export class Refused extends Error {
  readonly code: string;
  readonly status: number;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Sends a command of consumers. */
export async function command<Answer>(
  appId: string,
  provider: string,
  name: string,
  body: object = {},
): Promise<Answer> {
  const path = `/v1/consumer/applications/${appId}/providers/${provider}/${name}`;
  const answer = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status === 204 || answer.status === 202) return (await answer.json().catch(() => ({}))) as Answer;
  const read: { code?: string; message?: string } = await answer.json().catch(() => ({}));
  if (answer.ok) return read as Answer; // Described by the contract.
  throw new Refused(answer.status, read.code ?? 'internal', read.message ?? 'The service did not answer. Try again.');
}

export function showProblem(error: unknown): void {
  const problem = byId('problem');
  problem.textContent = error instanceof Error ? error.message : '';
  problem.hidden = error === undefined;
}

/** Runs the work of a form or button once at a time, and shows what went wrong. */
export async function busy(controls: Iterable<HTMLButtonElement>, work: () => Promise<void>): Promise<void> {
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

const DARK_BELOW = 0.4;

/** The colour of the application for buttons, with a readable text on it. */
export function paint(colour: string | undefined): void {
  const [, red, green, blue] = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(colour ?? '') ?? [];
  if (colour === undefined || red === undefined || green === undefined || blue === undefined) return;
  const linear = (part: string): number => (Number.parseInt(part, 16) / 255) ** 2.2;
  const light = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const { style } = document.documentElement;
  style.setProperty('--brand', colour);
  style.setProperty('--on-brand', light < DARK_BELOW ? '#ffffff' : '#10191d');
}
