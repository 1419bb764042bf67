// The page on which a consumer decides about an agent's request to use the consumer's memory. The address names the
// agent, the key of the item and the access. The consumer chooses how much to allow, and for how long.
import type { AgentKeySummary } from '../../contract/consumer-memory.ts';
import { build, button, byId, setTitle } from './parts.ts';
import type { Session } from './session.ts';

const KEY = /^[a-z0-9][a-z0-9._-]{0,127}$/;
const DAY_MS = 86_400_000;
const DURATIONS: ReadonlyArray<readonly [text: string, days: number | undefined]> = [
  ['for a day', 1],
  ['for 30 days', 30],
  ['until I withdraw it', undefined],
];

export async function showConsent(session: Session, keyId: string): Promise<void> {
  const query = new URLSearchParams(location.search);
  const key = query.get('key') ?? '';
  const access = query.get('access') === 'write' ? 'write' : 'read';
  if (!KEY.test(key))
    throw new Error('The address of this page is incomplete or not valid. Open the complete link that you were given.');
  const agent = await session.send<AgentKeySummary>('memory.agent', { keyId });
  const accessWords = access === 'write' ? 'read and change' : 'read';
  setTitle(
    `Allow ${agent.name} to ${accessWords} what is remembered about you?`,
    `${agent.name} is an agent of ${session.application}. It requests access to ${key}.`,
  );
  const keyPattern = key.includes('.') ? `${key.slice(0, key.indexOf('.') + 1)}*` : undefined;
  const keyChoice = choice('What', [
    [`only ${key}`, key],
    ...(keyPattern === undefined ? [] : [[`everything under ${keyPattern.slice(0, -1)}`, keyPattern] as const]),
  ]);
  const durationChoice = choice(
    'How long',
    DURATIONS.map(([text, days]) => [text, String(days ?? '')] as const),
  );
  const allow = async (): Promise<void> => {
    const days = Number(durationChoice.chosenValue());
    await session.send('memory.consent', {
      ...{ keyId, keys: [keyChoice.chosenValue()], access },
      ...(days > 0 ? { expiresAt: new Date(Date.now() + days * DAY_MS).toISOString() } : {}),
    });
    showDone(
      session,
      `${agent.name} can now ${accessWords} it. You can withdraw your consent at any time under Memory.`,
    );
  };
  const refuse = async (): Promise<void> =>
    showDone(session, `${agent.name} cannot ${accessWords} it. Nothing was changed.`);
  byId('body').replaceChildren(
    keyChoice.element,
    durationChoice.element,
    build('div', { className: 'stack' }, button('Allow', allow, 'main'), button('Do not allow', refuse)),
  );
}

function showDone({ appId }: Session, text: string): void {
  byId('body').replaceChildren(
    build('p', { className: 'done', role: 'status' }, text),
    build('a', { className: 'plainly', href: `/consumer/${appId}/memory` }, 'Your memory'),
  );
}

interface Choice {
  readonly element: HTMLElement;
  readonly chosenValue: () => string;
}

/** Initially, the first option is selected. */
function choice(title: string, options: ReadonlyArray<readonly [text: string, value: string]>): Choice {
  const inputs = options.map(([, value], at) =>
    build('input', { type: 'radio', name: title, value, checked: at === 0 }),
  );
  const labels = options.map(([text], at) => build('label', { className: 'radio' }, inputs[at] ?? '', text));
  return {
    element: build('fieldset', {}, build('legend', {}, title), ...labels),
    chosenValue: () => inputs.find(({ checked }) => checked)?.value ?? '',
  };
}
