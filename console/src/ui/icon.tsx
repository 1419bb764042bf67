// Icons of the console, drawn on one grid. They repeat the text beside them, so they are hidden from screen readers.
const PATHS = {
  overview: 'M4.5 19.5h15M6.5 16v-4M11 16V6.5M15.5 16v-7M19.5 16v-2',
  sessions: 'M3.5 5.5h17v13h-17zM3.5 9h17M6 7.3h.01M8 7.3h.01',
  operations: 'M4 7h8.5M16.5 7H20M4 12h3.5M11.5 12H20M4 17h8.5M16.5 17H20M14.5 5v4M9.5 10v4M14.5 15v4',
  invocations: 'M13 3.5L5.5 13.5H11l-1 7 8-10.5h-5.5z',
  contexts: 'M12 4l8 4-8 4-8-4zM4 12l8 4 8-4M4 16l8 4 8-4',
  extensions: 'M9 4.5h6v4h4.5v6H16v5H9v-3a2 2 0 1 0 0-4V8.5H4.5v6',
  certificates: 'M12 3.5l7 3v5c0 4.2-2.8 7.4-7 9-4.2-1.6-7-4.8-7-9v-5zM9 12l2 2 4-4.2',
  keys: 'M8.5 15.5a4 4 0 1 1 3.4-6H20v3.5h-2.5V15h-3v-2h-2.6a4 4 0 0 1-3.4 2.5zM8 11.5h.01',
  credentials: 'M6 11h12v8.5H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3M12 14.5v2',
  credit:
    'M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM14.6 9.6c-.5-.9-1.4-1.3-2.6-1.3-1.5 0-2.6.7-2.6 1.8s1.1 1.6 2.6 1.9 2.6.8 2.6 1.9-1.1 1.8-2.6 1.8c-1.2 0-2.1-.4-2.6-1.3M12 6.8v10.4',
  limits: 'M4 17a8 8 0 1 1 16 0M12 17l4-5M4 17h2M18 17h2',
  host: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20a7.5 7.5 0 0 1 15 0',
  applications: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
  tokens:
    'M5 8.5V6a1.5 1.5 0 0 1 1.5-1.5h11A1.5 1.5 0 0 1 19 6v12a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 5 18v-2.5M9 12h6M9 9h6M9 15h3',
  inbox: 'M4 13.5l2.6-8h10.8l2.6 8v5.5H4zM4 13.5h4.6l1.4 2.5h4l1.4-2.5H20',
  outbox: 'M3.5 6h17v12h-17zM3.5 6.5l8.5 6.5 8.5-6.5',
  docs: 'M5 4.5h9.5L19 9v10.5H5zM14 4.5V9h5M8.5 13h7M8.5 16h5',
  webhooks: 'M12 9a3 3 0 1 0-2.6-1.5L6.6 13M12 9l3 5M6 19a3 3 0 1 0 2.8-4H18M18 13a3 3 0 1 1-2.6 4.5',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  copy: 'M9 9h10.5v10.5H9zM5.5 15H4.5V4.5H15v1',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4.5 4.5',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M18.4 5.6L17 7M7 17l-1.4 1.4',
  moon: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z',
  system: 'M4 5h16v11H4zM9 20h6M12 16v4',
  back: 'M14.5 6l-6 6 6 6',
  down: 'M7 10l5 5 5-5',
  exit: 'M14 5H5v14h9M10 12h10M16.5 8.5L20 12l-3.5 3.5',
  warning: 'M12 4.5l8.5 15h-17zM12 10v4.5M12 17h.01',
  download: 'M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 19.5h14',
  play: 'M8 5.5v13l10.5-6.5z',
  pause: 'M8.5 5.5v13M15.5 5.5v13',
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) => (
  <svg
    aria-hidden="true"
    width={size}
    height={size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.7"
    strokeLinecap="round"
    strokeLinejoin="round"
    className="shrink-0"
  >
    <path d={PATHS[name]} />
  </svg>
);

/** The logo: a boat between two quays. */
export const Mark = ({ size = 24 }: { readonly size?: number }) => (
  <svg
    aria-hidden="true"
    width={size}
    height={size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.8"
    strokeLinecap="round"
    strokeLinejoin="round"
    className="shrink-0 text-accent"
  >
    <path d="M3 4v16M21 4v16" />
    <path d="M7 12h10l-1.6 5.2a2 2 0 0 1-1.9 1.4h-3a2 2 0 0 1-1.9-1.4z" className="fill-accent-soft" />
    <path d="M12 12V5l4 4" />
  </svg>
);
