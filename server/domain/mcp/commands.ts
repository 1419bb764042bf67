// The driver command for each tool that works on a page.
import type { BrowserToolInput, BrowserToolName } from '../../../contract/browser-tools.ts';
import type { Command, Field, FileContent } from '../../engines/driver/command.ts';
import { invalidRequest } from '../faults.ts';

export type HandOverTool = 'browser_hand_over' | 'browser_hand_over_wait' | 'browser_hand_over_cancel';
export type SessionTool = 'browser_open' | 'browser_close' | 'browser_sessions' | HandOverTool;
export type PageTool = Exclude<BrowserToolName, SessionTool>;

/** Reads the files of a call, including files that were uploaded earlier. */
export type ReadFiles = (files: BrowserToolInput<'browser_file_upload'>['files']) => Promise<readonly FileContent[]>;

type CommandBuilder<Name extends PageTool> = (
  input: BrowserToolInput<Name>,
  files: ReadFiles,
) => Command | Promise<Command>;

const COMMAND_BUILDERS: { readonly [Name in PageTool]: CommandBuilder<Name> } = {
  browser_navigate: ({ url }) => ({ do: 'navigate', url: absoluteUrl(url) }),
  browser_navigate_back: () => ({ do: 'back' }),
  browser_navigate_forward: () => ({ do: 'forward' }),
  browser_reload: () => ({ do: 'reload' }),
  browser_snapshot: () => ({ do: 'snapshot' }),
  browser_click: ({ ref, doubleClick = false, button = 'left', modifiers = [] }) => ({
    ...{ do: 'click', ref, double: doubleClick, button, modifiers },
  }),
  browser_hover: ({ ref }) => ({ do: 'hover', ref }),
  browser_drag: ({ startRef, endRef }) => ({ do: 'drag', from: startRef, to: endRef }),
  browser_type: ({ ref, text, submit = false, slowly = false }) => ({ do: 'type', ref, text, submit, slowly }),
  browser_fill_form: ({ fields }) => ({ do: 'fill', fields: fields.map(fieldOf) }),
  browser_press_key: ({ key }) => ({ do: 'press', key }),
  browser_select_option: ({ ref, values }) => ({ do: 'select', ref, values }),
  browser_file_upload: async ({ ref, files }, read) => ({
    ...{ do: 'files', files: await read(files) },
    ...(ref === undefined ? {} : { ref }),
  }),
  browser_take_screenshot: ({ ref, fullPage = false, type = 'png' }) => ({
    ...{ do: 'screenshot', fullPage, type },
    ...(ref === undefined ? {} : { ref }),
  }),
  browser_wait_for: ({ time, text, textGone }) => {
    if (time === undefined && text === undefined && textGone === undefined)
      throw invalidRequest([{ path: '', message: 'time, text or textGone is required' }]);
    return {
      do: 'wait',
      ...(time === undefined ? {} : { ms: 1000 * time }),
      ...(text === undefined ? {} : { text }),
      ...(textGone === undefined ? {} : { textGone }),
    };
  },
  browser_tabs: ({ action, index, url }) => {
    if (action === 'list') return { do: 'tabs', action };
    if (action === 'new') return { do: 'tabs', action, ...(url === undefined ? {} : { url: absoluteUrl(url) }) };
    if (action === 'select' && index === undefined)
      throw invalidRequest([{ path: 'index', message: 'is required to select a tab' }]);
    return { do: 'tabs', action, ...(index === undefined ? {} : { index }) };
  },
  browser_handle_dialog: ({ accept, promptText }) => ({
    ...{ do: 'dialog', accept },
    ...(promptText === undefined ? {} : { text: promptText }),
  }),
  browser_evaluate: ({ function: code, ref }) => ({ do: 'evaluate', code, ...(ref === undefined ? {} : { ref }) }),
  browser_console_messages: ({ onlyErrors = false }) => ({ do: 'console', errorsOnly: onlyErrors }),
  browser_network_requests: () => ({ do: 'requests' }),
  browser_resize: ({ width, height }) => ({ do: 'resize', width, height }),
};

/** Returns the driver command for a tool call. The input has been validated for this tool. */
export const commandOf = async (name: PageTool, input: unknown, files: ReadFiles): Promise<Command> =>
  COMMAND_BUILDERS[name](input as never, files);

/** Adds the scheme to a URL. Models often leave it out. */
const absoluteUrl = (url: string): string =>
  /^[a-z][a-z0-9+.-]*:/i.test(url) && !/^[^/:]+:\d/.test(url) ? url : withScheme(url);

const withScheme = (url: string): string =>
  /^(localhost|127\.|\[::1\])/i.test(url) ? `http://${url}` : `https://${url}`;

function fieldOf({ type, ref, value, name }: BrowserToolInput<'browser_fill_form'>['fields'][number]): Field {
  if (type === 'combobox') return { type: 'select', ref, value };
  if (type === 'textbox' || type === 'slider') return { type: 'text', ref, value };
  if (value !== 'true' && value !== 'false')
    throw invalidRequest([
      { path: 'fields', message: `has a value for ${JSON.stringify(name)} that is not true or false` },
    ]);
  return { type: 'checkbox', ref, checked: value === 'true' };
}
