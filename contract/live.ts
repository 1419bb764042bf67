// Addresses of the live view of a running session.
import { type Static, Type } from 'typebox';

export const DEBUG_EXPIRY_SECONDS_MAX = 21_600;

export const DebugQuery = Type.Object({
  expiresIn: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: DEBUG_EXPIRY_SECONDS_MAX,
      description: 'Seconds for which the addresses are valid. Defaults to 21600. They always end with the session.',
    }),
  ),
  readOnly: Type.Optional(
    Type.Enum(['true', 'false'], {
      description:
        'With `true`, the addresses permit watching only, even if somebody edits them, and `wsUrl` is absent.',
    }),
  ),
});
export type DebugQuery = Static<typeof DebugQuery>;

const Address = (description: string) => Type.String({ description });

export const DebugPage = Type.Object({
  id: Type.String({ description: 'CDP target id of the page.' }),
  url: Type.String({ description: 'URL of the page.' }),
  title: Type.String({ description: 'Title of the page. May be empty.' }),
  faviconUrl: Type.String({ description: 'URL of the icon of the page. May be empty.' }),
  isResponsive: Type.Boolean({
    description:
      'Whether the page responded within half a second. A page that is computing or shows a dialog may not respond; until it does, it is hidden from clients that connect. `Target.closeTarget` with its `id` closes it.',
  }),
  debuggerUrl: Address('Live view of this page.'),
  debuggerFullscreenUrl: Address('The same live view without the toolbar.'),
  devtoolsUrl: Type.Optional(
    Address('DevTools for this page. Open the address in a tab of your own browser. Absent with `readOnly`.'),
  ),
});

export const DebugUrls = Type.Object(
  {
    debuggerUrl: Address('Live view of the session, with tabs and a toolbar. Open it, or embed it in an iframe.'),
    debuggerFullscreenUrl: Address('The same live view without the toolbar.'),
    wsUrl: Type.Optional(
      Address(
        'WebSocket address of a browser-level CDP connection for the same purpose. It does not count as a client. Absent with `readOnly`.',
      ),
    ),
    pages: Type.Array(DebugPage, { description: 'Pages that are open now.' }),
  },
  { description: 'Live view addresses. Each is a secret: anyone who has it can use it until it expires.' },
);
export type DebugUrls = Static<typeof DebugUrls>;
