// The sign-in page for an application's consumers: passkey, code by e-mail, password. Shows only the methods that the
// application allows.
import type { HostedSignIn, HostedSignInResult } from '../../contract/consumers.ts';
import type { EmailCodeSent, PasskeyChallenge } from '../../contract/sign-in.ts';
import { askPasskey, supportsPasskeys } from '../src/api/passkeys.ts';
import { applyBrandColour, build, byId, CommandError, sendCommand, showProblem, withDisabled } from './parts.ts';

const [, , , appId = '', signInId = ''] = location.pathname.split('/');
const send = <Body>(name: string, body: object = {}): Promise<Body> =>
  sendCommand<Body>(appId, 'hosted', name, { signIn: signInId, ...body });

const finish = ({ redirectTo }: HostedSignInResult): void => location.replace(redirectTo);

let email = '';
let hostedSignIn: HostedSignIn;

function show(introduction: string, ...parts: readonly HTMLElement[]): void {
  showProblem(undefined);
  byId('lead').textContent = introduction;
  byId('body').replaceChildren(...parts);
  byId('body').querySelector<HTMLInputElement>('input:not([value])')?.focus();
}

const field = (text: string, input: HTMLInputElement): HTMLLabelElement => build('label', {}, text, input);

const emailInput = (): HTMLInputElement =>
  build('input', {
    ...{ name: 'email', type: 'email', required: true, autocomplete: 'username webauthn', inputMode: 'email' },
    value: email || (hostedSignIn.loginHint ?? ''),
  });

const passwordInput = (autocomplete: 'current-password' | 'new-password'): HTMLInputElement =>
  build('input', { name: 'password', type: 'password', required: true, autocomplete });

/** A form that runs `work` with its values. */
function form(
  submitText: string,
  inputs: readonly HTMLElement[],
  work: (values: FormData) => Promise<void>,
): HTMLFormElement {
  const button = build('button', { className: 'main', type: 'submit' }, submitText);
  const formElement = build('form', {}, ...inputs, button);
  formElement.addEventListener('submit', event => {
    event.preventDefault();
    void withDisabled(formElement.querySelectorAll('button'), () => work(new FormData(formElement)));
  });
  return formElement;
}

const textOf = (values: FormData, name: string): string => {
  const value = values.get(name);
  return typeof value === 'string' ? value : '';
};

function linkButton(text: string, action: () => void): HTMLButtonElement {
  const button = build('button', { className: 'link', type: 'button' }, text);
  button.addEventListener('click', action);
  return button;
}

function passkeyButton(): HTMLButtonElement {
  const button = build(
    'button',
    { type: 'button', className: hostedSignIn.methods[0] === 'passkey' ? 'main' : '' },
    'Use a passkey',
  );
  button.addEventListener('click', () =>
    withDisabled([button], async () => {
      const challenge = await send<PasskeyChallenge>('hosted.passkeyOptions');
      const response = await askPasskey(challenge);
      finish(await send<HostedSignInResult>('hosted.passkey', { ticket: challenge.ticket, response }));
    }),
  );
  return button;
}

/** Shows the first view, with the sign-in methods. */
function showMethods(): void {
  const { methods } = hostedSignIn;
  const elements: HTMLElement[] = [];
  if (methods.includes('passkey') && supportsPasskeys()) elements.push(passkeyButton());
  if (elements.length > 0 && methods.length > 1) elements.push(build('div', { className: 'or' }, 'or'));
  if (methods.includes('email_code')) elements.push(codeForm());
  else if (methods.includes('password')) elements.push(passwordForm());
  if (methods.includes('email_code') && methods.includes('password'))
    elements.push(
      linkButton('Use a password instead', () => show('Sign in with your password.', passwordForm(), ...backLinks())),
    );
  if (methods.includes('password')) elements.push(newPasswordLink());
  if (elements.length === 0) {
    showProblem(
      new Error('This browser does not support any of the sign-in methods offered here. Use another browser.'),
    );
    return;
  }
  show(
    hostedSignIn.registration === 'open' ? 'Sign in, or sign up with your e-mail address.' : 'Sign in to continue.',
    build('div', { className: 'stack' }, ...elements),
  );
}

const backLinks = (): HTMLElement[] => [linkButton('Back', showMethods)];

const newPasswordLink = (): HTMLButtonElement =>
  linkButton(
    hostedSignIn.registration === 'open' ? 'New here, or forgot your password?' : 'Forgot your password?',
    () => show('Choose a password. We send you a code to confirm it.', newPasswordForm(), ...backLinks()),
  );

const codeForm = (): HTMLFormElement =>
  form('Send me a code', [field('E-mail address', emailInput())], async values => {
    email = textOf(values, 'email');
    const { ticket } = await send<EmailCodeSent>('hosted.code', { email });
    askCode(ticket);
  });

const passwordForm = (): HTMLFormElement =>
  form(
    'Sign in',
    [field('E-mail address', emailInput()), field('Password', passwordInput('current-password'))],
    async values => {
      email = textOf(values, 'email');
      finish(await send<HostedSignInResult>('hosted.password', { email, password: textOf(values, 'password') }));
    },
  );

const newPasswordForm = (): HTMLFormElement => {
  const passwordField = Object.assign(passwordInput('new-password'), { minLength: 12 });
  return form(
    'Continue',
    [field('E-mail address', emailInput()), field('New password', passwordField)],
    async values => {
      email = textOf(values, 'email');
      const { ticket } = await send<EmailCodeSent>('hosted.register', { email, password: textOf(values, 'password') });
      askCode(ticket);
    },
  );
};

function askCode(ticket: string): void {
  const codeInput = build('input', {
    ...{ name: 'code', className: 'code', required: true, autocomplete: 'one-time-code', inputMode: 'numeric' },
    maxLength: 12,
  });
  const verifyForm = form('Sign in', [field('Code', codeInput)], async values =>
    finish(await send<HostedSignInResult>('hosted.verify', { ticket, code: textOf(values, 'code') })),
  );
  show(
    `If ${email} can sign in here, a six-digit code is on its way. It is valid for ten minutes.`,
    verifyForm,
    ...backLinks(),
  );
}

async function open(): Promise<void> {
  hostedSignIn = await send<HostedSignIn>('hosted.describe');
  document.title = `Sign in to ${hostedSignIn.application.name}`;
  byId('brand').textContent = hostedSignIn.application.name;
  byId('foot').textContent = `You will return to ${hostedSignIn.returnsTo}.`;
  applyBrandColour(hostedSignIn.application.colour);
  showMethods();
}

open().catch(error =>
  showProblem(
    error instanceof CommandError && error.status === 404
      ? new Error('This sign-in was already completed, or has expired. Go back to the application and sign in again.')
      : error,
  ),
);
