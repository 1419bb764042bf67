// Addresses at which people watch and drive a running session.
import { type Static, Type } from 'typebox';

export const DEBUG_EXPIRES_MAX_SECONDS = 21_600;

export const DebugQuery = Type.Object({
  expiresIn: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: DEBUG_EXPIRES_MAX_SECONDS,
      description: 'Seconds the addresses work. Left out: as long as the session, at most 21600.',
    }),
  ),
  readOnly: Type.Optional(
    Type.Enum(['true', 'false'], {
      description:
        '`true`: the addresses let people watch and never drive, whatever is changed in them. No `wsUrl` then.',
    }),
  ),
});
export type DebugQuery = Static<typeof DebugQuery>;

const Address = (description: string) => Type.String({ description });

export const DebugPage = Type.Object({
  id: Type.String({ description: 'The CDP target id.' }),
  url: Type.String({ description: 'Where the page is.' }),
  title: Type.String({ description: 'Its title; may be empty.' }),
  faviconUrl: Type.String({ description: 'Address of its icon; may be empty.' }),
  debuggerUrl: Address('Live view of this page.'),
  debuggerFullscreenUrl: Address('The same without a bar.'),
  devtoolsUrl: Type.Optional(Address('DevTools on this page, to be opened in a tab. Absent with `readOnly`.')),
});

export const DebugUrls = Type.Object(
  {
    debuggerUrl: Address('Live view with a browser frame. Put it into an iframe, or open it.'),
    debuggerFullscreenUrl: Address('The same without a bar.'),
    wsUrl: Type.Optional(
      Address('A browser-level CDP socket for the same people; it does not count as a client. Absent with `readOnly`.'),
    ),
    pages: Type.Array(DebugPage, { description: 'The pages that are open now.' }),
  },
  { description: 'Addresses for people. Each is a secret: whoever has one may do what it allows until it ends.' },
);
export type DebugUrls = Static<typeof DebugUrls>;
