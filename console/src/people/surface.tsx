// The layout of a page with one task: sign in, set up an account, approve a device.
import { type ReactNode, useEffect } from 'react';
import { ThemeToggle } from '../shell/theme-toggle.tsx';
import { Mark } from '../ui/icon.tsx';

export function CenteredPage({
  title,
  about,
  children,
}: {
  readonly title: string;
  readonly about?: ReactNode;
  readonly children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Berth`;
  }, [title]);
  return (
    <div className="grid min-h-dvh grid-rows-[auto_1fr]">
      <div className="flex justify-end p-3">
        <ThemeToggle />
      </div>
      <main className="mx-auto w-full max-w-[420px] px-5 pt-[6vh] pb-16">
        <Mark size={40} />
        <h1 className="mt-4 text-xl font-semibold tracking-tight break-words">{title}</h1>
        {about && <p className="mt-1.5 text-soft">{about}</p>}
        <div className="mt-6">{children}</div>
      </main>
    </div>
  );
}
