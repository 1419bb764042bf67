// Log entries for pages: navigations, loads, dialogs and crashes.
import type { JsonObject } from '../../kit/json.ts';
import { redactedText } from './console-entries.ts';
import { redactUrl } from './redact.ts';
import { objectAt, plainMembers, textAt, type UntrustedObject } from './values.ts';

/** Returns the logged fields of an event. Undefined for events that are not logged. */
export function pageParams(method: string, params: UntrustedObject): JsonObject | undefined {
  switch (method) {
    case 'Page.frameNavigated':
      return { frame: frameFields(objectAt(params, 'frame')), ...plainMembers(params, ['type']) };
    case 'Page.navigatedWithinDocument':
      return { ...plainMembers(params, ['frameId', 'navigationType']), url: redactUrl(textAt(params, 'url') ?? '') };
    case 'Page.lifecycleEvent':
      return params.name === 'load' ? plainMembers(params, ['frameId', 'loaderId', 'name', 'timestamp']) : undefined;
    case 'Page.javascriptDialogOpening':
      return {
        url: redactUrl(textAt(params, 'url') ?? ''),
        message: redactedText(textAt(params, 'message') ?? ''),
        ...plainMembers(params, ['frameId', 'type', 'hasBrowserHandler']),
      };
    case 'Inspector.targetCrashed':
      return {};
    default:
      return undefined;
  }
}

function frameFields(frameParams: UntrustedObject | undefined): JsonObject {
  const fragment = textAt(frameParams, 'urlFragment');
  const unreachableUrl = textAt(frameParams, 'unreachableUrl');
  return {
    ...plainMembers(frameParams, ['id', 'parentId', 'loaderId', 'name', 'mimeType', 'securityOrigin']),
    url: redactUrl(textAt(frameParams, 'url') ?? ''),
    ...(fragment === undefined ? {} : { urlFragment: redactUrl(fragment) }),
    ...(unreachableUrl === undefined ? {} : { unreachableUrl: redactUrl(unreachableUrl) }),
  };
}
