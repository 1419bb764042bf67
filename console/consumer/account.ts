// The account of a consumer: name, passkeys, devices where the consumer is signed in, stored data, and deletion of the
// account.
import type { ConsumerDevice, ConsumerDevices } from '../../contract/consumer-data.ts';
import type { ConsumerPasskeys, ConsumerProfile } from '../../contract/consumers.ts';
import type { PasskeyChallenge } from '../../contract/sign-in.ts';
import { createPasskey, supportsPasskeys } from '../src/api/passkeys.ts';
import { build, button, byId, confirmButton, listOf, setTitle, timeOf, withDisabled } from './parts.ts';
import { saveFile } from './receipts.ts';
import type { Session } from './session.ts';

export async function showAccount(session: Session): Promise<void> {
  const [profile, passkeys, devices] = await Promise.all([
    session.send<ConsumerProfile>('profile.get'),
    session.send<ConsumerPasskeys>('passkeys.list'),
    session.send<ConsumerDevices>('session.list'),
  ]);
  setTitle('Account', `Signed in as ${profile.displayName ?? profile.email ?? profile.subject}.`);
  byId('body').replaceChildren(
    nameForm(session, profile),
    build('h2', {}, 'Passkeys'),
    listOf(
      passkeys.data.map(one => passkeyItem(session, one)),
      'None. With a passkey you can sign in without a code, and sign your approvals.',
    ),
    ...(supportsPasskeys() ? [createAddPasskeyButton(session, passkeys.data.length === 0)] : []),
    build('h2', {}, 'Signed-in devices'),
    listOf(
      devices.data.map(one => deviceItem(session, one)),
      'None.',
    ),
    build(
      'div',
      { className: 'stack' },
      createSignOutButton(session, 'session.end', 'Sign out'),
      ...signOutElsewhereButtons(session, devices),
    ),
    build('h2', {}, 'Your stored data'),
    build('p', { className: 'soft' }, 'One archive with your profile, memory, consents, decisions and receipts.'),
    button('Download it', async () => saveFile(await session.download('profile.export'), 'profile.zip')),
    build('h2', {}, 'Delete the account'),
    build(
      'p',
      { className: 'soft' },
      `Your profile, memory and passkeys are destroyed, and agents of ${session.application} can no longer act for you. This cannot be undone.`,
    ),
    confirmButton('Delete my account', 'Delete it for good', async () => {
      await session.send('profile.delete');
      location.assign(`/consumer/${session.appId}`);
    }),
  );
}

function nameForm(session: Session, profile: ConsumerProfile): HTMLFormElement {
  const input = build('input', {
    ...{ name: 'displayName', required: true, maxLength: 64, autocomplete: 'name', value: profile.displayName ?? '' },
  });
  const saveButton = build('button', { type: 'submit' }, 'Save');
  const form = build('form', { className: 'inline' }, build('label', {}, 'Name', input), saveButton);
  form.addEventListener('submit', event => {
    event.preventDefault();
    void withDisabled([saveButton], async () => {
      await session.send('profile.update', { displayName: input.value });
      await showAccount(session);
    });
  });
  return form;
}

const createAddPasskeyButton = (session: Session, isFirst: boolean): HTMLButtonElement =>
  button(
    'Add a passkey',
    async () => {
      const challenge = await session.send<PasskeyChallenge>('passkeys.options');
      const response = await createPasskey(challenge);
      await session.send('passkeys.add', { ticket: challenge.ticket, name: deviceName(navigator.userAgent), response });
      await showAccount(session);
    },
    isFirst ? 'main' : '',
  );

function passkeyItem(session: Session, { id, name, createdAt }: ConsumerPasskeys['data'][number]): HTMLLIElement {
  const textElement = build(
    'div',
    { className: 'row' },
    build('strong', {}, name),
    build('span', { className: 'about' }, 'added ', timeOf(createdAt)),
  );
  const removeButton = confirmButton(
    'Remove',
    'Remove it',
    async () => {
      await session.send('passkeys.remove', { id });
      await showAccount(session);
    },
    `Remove the passkey ${name}`,
  );
  return build('li', { className: 'pair' }, textElement, removeButton);
}

function deviceItem(
  session: Session,
  { id, isThis, userAgent, lastUsedAt, createdAt, lastUsedIp }: ConsumerDevice,
): HTMLLIElement {
  const deviceLabel = deviceName(userAgent ?? '');
  const textElement = build(
    'div',
    { className: 'row' },
    build('strong', {}, deviceLabel),
    ...(isThis ? [build('span', { className: 'badge' }, 'this device')] : []),
    build(
      'span',
      { className: 'about' },
      ...(lastUsedIp === undefined ? [] : [`${lastUsedIp}, `]),
      'used ',
      timeOf(lastUsedAt ?? createdAt),
    ),
  );
  const signOutButton = button(
    'Sign out',
    async () => {
      await session.send('session.endOne', { id });
      await showAccount(session);
    },
    'quiet',
    `Sign out of ${deviceLabel}`,
  );
  return build('li', { className: 'pair' }, textElement, ...(isThis ? [] : [signOutButton]));
}

const signOutElsewhereButtons = (session: Session, { data }: ConsumerDevices): readonly HTMLButtonElement[] =>
  data.length > 1 ? [createSignOutButton(session, 'session.endAll', 'Sign out everywhere')] : [];

const createSignOutButton = (
  session: Session,
  name: 'session.end' | 'session.endAll',
  text: string,
): HTMLButtonElement =>
  button(text, async () => {
    const { logoutUrl } = await session.send<{ logoutUrl?: string }>(name);
    location.assign(logoutUrl ?? `/consumer/${session.appId}`);
  });

const SYSTEMS = ['iPhone', 'iPad', 'Android', 'Windows', 'Mac', 'Linux'] as const;
const BROWSERS = ['Edg', 'Firefox', 'Chrome', 'Safari'] as const;

/** A recognizable name for a device, from its user agent. */
function deviceName(userAgent: string): string {
  const browser = BROWSERS.find(name => userAgent.includes(name))?.replace('Edg', 'Edge');
  const system = SYSTEMS.find(name => userAgent.includes(name));
  if (browser === undefined && system === undefined) return userAgent === '' ? 'A program' : userAgent.slice(0, 40);
  return [browser, system].filter(one => one !== undefined).join(' on ');
}
