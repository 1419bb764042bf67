// The sign-in page. The token is checked before it is stored.
import { type FormEvent, useEffect, useState } from 'react';
import { signIn, signOutReason, tryToken } from '../api/credentials.ts';
import { Button } from '../ui/button.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { TextField } from '../ui/form.tsx';
import { Mark } from '../ui/icon.tsx';
import { FormError } from '../ui/states.tsx';
import { ThemeToggle } from './theme-toggle.tsx';

export function SignIn() {
  const [text, setText] = useState('');
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const reason = signOutReason();
  useEffect(() => {
    document.title = 'Sign in · Berth';
  }, []);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const given = text.trim();
    if (!given.startsWith('bpt_'))
      return setError(
        new Error(
          'This is not a personal access token. Personal access tokens begin with bpt_; agent keys cannot sign in to the console.',
        ),
      );
    setBusy(true);
    setError(await problemWith(given));
    setBusy(false);
  };
  return (
    <div className="grid min-h-dvh grid-rows-[auto_1fr]">
      <div className="flex justify-end p-3">
        <ThemeToggle />
      </div>
      <main className="mx-auto w-full max-w-[400px] px-5 pt-[8vh] pb-16">
        <Mark size={40} />
        <h1 className="mt-4 text-xl font-semibold tracking-tight">Sign in to Berth</h1>
        <p className="mt-1.5 mb-6 text-soft">
          Use a personal access token. It is kept only in this tab, until you close it.
        </p>
        <form onSubmit={event => void submit(event)} className="grid gap-4">
          {reason && !error && (
            <p role="status" className="rounded-md bg-warn-soft px-3 py-2 text-sm">
              {reason}
            </p>
          )}
          <TextField
            label="Personal access token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            placeholder="bpt_…"
            value={text}
            onChange={event => setText(event.target.value)}
            aria-invalid={Boolean(error) || undefined}
            required
          />
          <FormError error={error} />
          <Button type="submit" look="primary" busy={busy}>
            Sign in
          </Button>
        </form>
        <div className="mt-10 border-t border-line pt-5">
          <h2 className="mb-2 text-sm font-semibold">No token?</h2>
          <p className="mb-3 text-sm text-soft">
            Run this command on the machine that runs Berth. It prints a sign-in link:
          </p>
          <CodeBlock code="npm run -s berth -- console" label="the command" />
        </div>
      </main>
    </div>
  );
}

/** Signs in, or returns an error message. */
async function problemWith(given: string): Promise<unknown> {
  try {
    await tryToken(given);
    signIn(given);
    return undefined;
  } catch (error) {
    return error;
  }
}
