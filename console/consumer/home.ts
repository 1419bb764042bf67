// The pages of a consumer who is signed in: waiting items, receipts, memory, the account, the decision about an Action
// or a consent, and control of a browser in a hand-off. All of these pages are one document, which shows the page that
// the address names.
import type { ServiceConfig } from '../../contract/config.ts';
import { showAccount } from './account.ts';
import { showApproval } from './approval.ts';
import { showConsent } from './consent.ts';
import { showHandoff } from './handoff.ts';
import { showMemory } from './memory.ts';
import { applyBrandColour, build, byId, CommandError, setTitle, showProblem, withDisabled } from './parts.ts';
import { showReceipts } from './receipts.ts';
import { finishSignIn, isSignedOut, type Session, sessionOf, startSignIn } from './session.ts';
import { showWaiting } from './waiting.ts';

const [, , appId = '', page = '', resourceId = ''] = location.pathname.split('/');

interface Page {
  /** The text in the navigation. If it is absent, the page can be reached only by a link. */
  readonly tab?: string;
  /** Shown above the buttons of the sign-in page. */
  readonly signInReason: string;
  readonly show: (session: Session) => Promise<void>;
}

const PAGES: Readonly<Record<string, Page>> = {
  '': { tab: 'For you', signInReason: 'Sign in to see what agents ask of you.', show: showWaiting },
  receipts: { tab: 'Receipts', signInReason: 'Sign in to see what agents did for you.', show: showReceipts },
  memory: { tab: 'Memory', signInReason: 'Sign in to see what agents remember about you.', show: showMemory },
  account: { tab: 'Account', signInReason: 'Sign in to see your account.', show: showAccount },
  approve: {
    signInReason: 'Sign in to see what an agent asks of you.',
    show: session => showApproval(session, resourceId),
  },
  handoffs: {
    signInReason: 'Sign in to help an agent in its browser.',
    show: session => showHandoff(session, resourceId),
  },
  consent: {
    signInReason: 'Sign in to decide whether an agent may use what is remembered about you.',
    show: session => showConsent(session, resourceId),
  },
};

type Providers = ReadonlyArray<{ readonly id: string; readonly title: string }>;

function showProviders(providers: Providers, reason: string): void {
  document.body.className = 'single';
  setTitle('Sign in', reason);
  const buttons = providers.map(({ id, title }) => {
    const text = id === 'hosted' ? 'Sign in' : `Sign in with ${title}`;
    const button = build('button', { type: 'button', className: 'main' }, text);
    button.addEventListener('click', () => withDisabled([button], () => startSignIn(appId, id)));
    return button;
  });
  byId('body').replaceChildren(build('div', { className: 'stack' }, ...buttons));
}

function showTabs(): void {
  const tabs = Object.entries(PAGES).flatMap(([name, { tab }]) => {
    if (tab === undefined) return [];
    const link = build('a', { href: `/consumer/${appId}${name === '' ? '' : `/${name}`}` }, tab);
    if (name === page) link.setAttribute('aria-current', 'page');
    return [link];
  });
  byId('nav').replaceChildren(...tabs);
  byId('nav').hidden = false;
}

async function open(): Promise<void> {
  const config: ServiceConfig = await (await fetch(`/v1/config?application=${encodeURIComponent(appId)}`)).json();
  const { consumer } = config;
  if (!consumer)
    throw new Error(
      'This application does not exist, or sign-in is not set up for it. Check the address, or ask the owner of the application.',
    );
  const pageToShow = PAGES[page];
  if (!pageToShow) throw new Error('This page does not exist. Check the address.');
  document.title = `${pageToShow.tab ?? 'To decide'} · ${consumer.name}`;
  byId('brand').textContent = consumer.name;
  applyBrandColour(consumer.colour);
  await finishSignIn(appId);
  try {
    if (resourceId !== '') document.body.className = 'single';
    if (resourceId === '' && pageToShow.tab === undefined)
      throw new Error('This page does not exist. Check the address.');
    await pageToShow.show(sessionOf(appId, consumer.name));
    if (resourceId === '') showTabs();
  } catch (error) {
    if (!(error instanceof CommandError) || !isSignedOut(error, resourceId !== '')) throw error;
    showProviders(consumer.providers, pageToShow.signInReason);
  }
}

open().catch(showProblem);
