// The own page of a consumer: signs in with a cookie, shows the profile and the passkeys.
import type { ServiceConfig } from '../../contract/config.ts';
import type { ConsumerPasskeys, ConsumerProfile } from '../../contract/consumers.ts';
import type { PasskeyChallenge } from '../../contract/sign-in.ts';
import { createPasskey, hasPasskeys } from '../src/api/passkeys.ts';
import { showApproval } from './approval.ts';
import { busy, byId, command, make, paint, Refused, showProblem } from './parts.ts';
import { finishSignIn, startSignIn } from './session.ts';

const [, , appId = '', , jobId] = location.pathname.split('/');
let provider = 'hosted';
const send = <Answer>(name: string, body: object = {}): Promise<Answer> => command<Answer>(appId, provider, name, body);

async function showProviders(providers: ReadonlyArray<{ readonly id: string; readonly title: string }>): Promise<void> {
  byId('lead').textContent =
    jobId === undefined ? 'Sign in to see what is kept about you.' : 'Sign in to see what an agent asks of you.';
  const buttons = providers.map(({ id, title }) => {
    const button = make(
      'button',
      { type: 'button', className: 'main' },
      id === 'hosted' ? 'Sign in' : `Sign in with ${title}`,
    );
    button.addEventListener('click', () => busy([button], () => startSignIn(appId, id)));
    return button;
  });
  byId('body').replaceChildren(make('div', { className: 'stack' }, ...buttons));
}

async function showAccount(): Promise<void> {
  const [profile, passkeys] = await Promise.all([
    send<ConsumerProfile>('profile.get'),
    send<ConsumerPasskeys>('passkeys.list'),
  ]);
  byId('lead').textContent = `Signed in as ${profile.displayName ?? profile.email ?? profile.subject}.`;
  const add = make('button', { type: 'button', className: passkeys.data.length === 0 ? 'main' : '' }, 'Add a passkey');
  add.addEventListener('click', () =>
    busy([add], async () => {
      const challenge = await send<PasskeyChallenge>('passkeys.options');
      const response = await createPasskey(challenge);
      await send('passkeys.add', { ticket: challenge.ticket, name: 'Passkey', response });
      await showAccount();
    }),
  );
  const out = make('button', { type: 'button' }, 'Sign out');
  out.addEventListener('click', () =>
    busy([out], async () => {
      const { logoutUrl } = await send<{ logoutUrl?: string }>('session.end');
      location.assign(logoutUrl ?? location.pathname);
    }),
  );
  byId('body').replaceChildren(
    make('h2', {}, 'Passkeys'),
    make('ul', { className: 'plain' }, ...passkeys.data.map(passkeyItem)),
    make('div', { className: 'stack' }, ...(hasPasskeys() ? [add] : []), out),
  );
}

function passkeyItem({ id, name }: ConsumerPasskeys['data'][number]): HTMLLIElement {
  const remove = make(
    'button',
    { type: 'button', className: 'bad', ariaLabel: `Remove the passkey ${name}` },
    'Remove',
  );
  remove.addEventListener('click', () =>
    busy([remove], async () => {
      await send('passkeys.remove', { id });
      await showAccount();
    }),
  );
  return make('li', {}, make('span', {}, name), remove);
}

async function open(): Promise<void> {
  const config: ServiceConfig = await (await fetch(`/v1/config?application=${encodeURIComponent(appId)}`)).json();
  if (!config.consumer) throw new Error('Nobody can sign in here.');
  document.title = `Your account at ${config.consumer.name}`;
  byId('title').textContent = config.consumer.name;
  paint(config.consumer.colour);
  provider = (await finishSignIn(appId)) ?? sessionStorage.getItem(`provider ${appId}`) ?? 'hosted';
  try {
    await (jobId === undefined ? showAccount() : showApproval(send, jobId));
  } catch (error) {
    const isSignedOut =
      error instanceof Refused && (error.status === 401 || (error.status === 404 && jobId === undefined));
    if (!isSignedOut) throw error;
    await showProviders(config.consumer.providers);
  }
}

open().catch(showProblem);
