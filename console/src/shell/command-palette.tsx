// The command palette (Ctrl+K). It finds pages, applications and sessions by name, id or words, and opens them.
import { Dialog } from '@base-ui/react/dialog';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import { isOffered } from '../api/call.ts';
import { applicationsQuery, sessionSearchQuery } from '../api/queries.ts';
import { isSessionId } from '../pages/session-filters.ts';
import { IconButton } from '../ui/button.tsx';
import { Icon, type IconName } from '../ui/icon.tsx';
import { statusWord } from '../ui/status.tsx';
import { useShortcut } from '../ui/use-shortcut.ts';
import { PAGES, SERVICE_PAGES } from './places.ts';

interface Command {
  readonly key: string;
  readonly icon: IconName;
  readonly name: string;
  /** Shown after the name. */
  readonly hint: string;
  run(): void;
}

const RESULTS_MAX = 12;
/** A search for fewer characters would find nearly every session. */
const SEARCH_CHARACTERS_MIN = 2;

export function CommandPalette({
  app,
  open,
  setOpen,
}: {
  readonly app: string | undefined;
  readonly open: boolean;
  readonly setOpen: (open: boolean) => void;
}) {
  useShortcut('k', () => setOpen(!open), { ctrl: true });
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-code/40" />
        <Dialog.Popup className="fixed inset-x-3 top-[8vh] z-50 mx-auto flex max-h-[80vh] max-w-[560px] flex-col overflow-hidden rounded-xl border border-line bg-raised shadow-2xl">
          <Dialog.Title className="sr-only">Go to</Dialog.Title>
          <Finder app={app} close={() => setOpen(false)} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

export const PaletteButton = ({ onOpen }: { readonly onOpen: () => void }) => (
  <button
    type="button"
    aria-keyshortcuts="Control+K"
    onClick={onOpen}
    className="flex h-8 w-full items-center gap-2.5 rounded-md border border-line-strong bg-raised px-2.5 text-sm text-soft hover:text-ink"
  >
    <Icon name="search" size={16} />
    Go to
    <kbd className="ml-auto text-xs text-faint">Ctrl K</kbd>
  </button>
);

function Finder({ app, close }: { readonly app: string | undefined; readonly close: () => void }) {
  const [text, setText] = useState('');
  const [activeIndex, setActiveIndex] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const searchInput = useRef<HTMLInputElement>(null);
  const { commands, isSearching } = useCommands(app, text);
  const activeCommand = commands[Math.min(activeIndex, commands.length - 1)];
  const choose = (command: Command | undefined): void => {
    if (!command) return;
    close();
    command.run();
  };
  const handleKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && commands.length > 0)
      setActiveIndex((Math.min(activeIndex, commands.length - 1) + step + commands.length) % commands.length);
    else if (event.key === 'Enter' && !event.nativeEvent.isComposing) choose(activeCommand);
    else return;
    event.preventDefault();
  };
  // Sets the focus at once, because a person who presses Ctrl+K continues to type.
  useLayoutEffect(() => searchInput.current?.focus(), []);
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  });
  return (
    <>
      <div className="flex items-center gap-2 border-b border-line pr-2 pl-4">
        <Icon name="search" />
        <input
          ref={searchInput}
          role="combobox"
          aria-label="Page, session id or words"
          aria-expanded
          aria-autocomplete="list"
          aria-controls={`${id}-list`}
          aria-activedescendant={activeCommand && optionId(id, activeCommand)}
          placeholder="Page, session id or words"
          value={text}
          onChange={event => {
            setText(event.target.value);
            setActiveIndex(0);
          }}
          onKeyDown={handleKeyDown}
          className="h-12 min-w-0 grow bg-transparent outline-none"
        />
        <Dialog.Close render={<IconButton label="Close" icon="close" />} />
      </div>
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label="Places"
        className={commands.length > 0 ? 'min-h-0 overflow-y-auto p-2' : ''}
      >
        {commands.map(command => (
          <div
            key={command.key}
            id={optionId(id, command)}
            role="option"
            tabIndex={-1}
            aria-selected={command === activeCommand}
            onClick={() => choose(command)}
            onKeyDown={handleKeyDown}
            className="flex min-h-10 cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm hover:bg-sunk aria-selected:bg-accent-soft aria-selected:text-accent"
          >
            <Icon name={command.icon} />
            <span className="truncate">{command.name}</span>
            <span className="ml-auto max-w-[45%] shrink-0 truncate pl-3 text-xs text-soft">{command.hint}</span>
          </div>
        ))}
      </div>
      <p role="status" className={commands.length > 0 ? 'sr-only' : 'px-4 py-6 text-center text-sm text-soft'}>
        {commands.length > 0 ? `${commands.length} places` : isSearching ? 'Searching' : 'Nothing found'}
      </p>
    </>
  );
}

const optionId = (id: string, { key }: Command): string => `${id}-${key.replaceAll(/\W/g, '_')}`;

function useCommands(app: string | undefined, text: string) {
  const words = text.trim();
  const searchedWords = useDeferredValue(words);
  const navigate = useNavigate();
  const { data: applications } = useQuery(applicationsQuery);
  const canSearch = app !== undefined && words.length >= SEARCH_CHARACTERS_MIN;
  const { data: sessions, isPending } = useQuery({
    ...sessionSearchQuery(app ?? '', searchedWords),
    enabled: canSearch,
  });
  // While a search is running, Enter must not open what was found for an earlier search text.
  const isSearching = canSearch && (searchedWords !== words || isPending);
  const pageCommands: Command[] = [
    ...(app === undefined
      ? []
      : PAGES.filter(({ needs }) => isOffered(needs)).map(({ to, icon, name }) => ({
          ...{ key: to, icon, name, hint: 'Page' },
          run: () => void navigate({ to, params: { app } }),
        }))),
    ...(app !== undefined && isOffered('createSession') ? [newSessionCommand(() => openNewSessionPage(app))] : []),
    ...SERVICE_PAGES.map(({ to, icon, name }) => ({
      ...{ key: to, icon, name, hint: 'Service' },
      run: () => void navigate({ to }),
    })),
    { key: 'docs', icon: 'docs', name: 'Docs', hint: 'Service', run: () => location.assign('/docs') },
    ...(applications?.data ?? [])
      .filter(({ id }) => id !== app)
      .map(({ id, name }) => ({
        ...{ key: id, icon: 'applications' as const, name, hint: 'Application' },
        run: () => void navigate({ to: '/a/$app', params: { app: id } }),
      })),
  ];
  const openNewSessionPage = (targetApp: string): void =>
    void navigate({ to: '/a/$app/sessions/new', params: { app: targetApp } });
  const openSession = (id: string): void => {
    if (app !== undefined) void navigate({ to: '/a/$app/sessions/$id', params: { app, id } });
  };
  const sessionCommands: Command[] =
    !canSearch || isSearching
      ? []
      : (sessions ?? []).map(({ id, lastPage, status }) => ({
          ...{ key: id, icon: 'sessions', name: lastPage?.title || lastPage?.url || id },
          hint: `${statusWord(status)}, ${id.slice(0, 8)}\u2026${id.slice(-6)}`,
          run: () => openSession(id),
        }));
  const canOpenById = app !== undefined && isSessionId(words) && sessionCommands.length === 0;
  const matchingCommands = pageCommands.filter(({ name }) => containsAll(name, words));
  const allCommands: Command[] = [
    ...(canOpenById ? [openByIdCommand(words.toLowerCase(), openSession)] : []),
    ...matchingCommands,
    ...sessionCommands.filter(({ key }) => !matchingCommands.some(page => page.key === key)),
  ];
  return { commands: allCommands.slice(0, words === '' ? allCommands.length : RESULTS_MAX), isSearching };
}

const newSessionCommand = (run: () => void): Command => ({
  ...{ key: 'new', icon: 'plus', name: 'New session', hint: 'Action', run },
});

const openByIdCommand = (id: string, open: (id: string) => void): Command => ({
  ...{ key: `open ${id}`, icon: 'sessions', name: id, hint: 'Session' },
  run: () => open(id),
});

const containsAll = (name: string, words: string): boolean =>
  words
    .toLowerCase()
    .split(/\s+/)
    .every(word => name.toLowerCase().includes(word));
