// Decides which commands of clients are logged, and which fields of each command and of its response. Typed text and
// arguments are never logged.
import { isObject, type JsonObject } from '../../kit/json.ts';
import { redactedText, remoteObject } from './console-entries.ts';
import { SCANNED_CHARS_MAX, scanExpression } from './expression.ts';
import { REDACTED, redactUrl } from './redact.ts';
import { objectAt, plainMembers, textAt, type UntrustedObject } from './values.ts';

const EVALUATE_METHOD = 'Runtime.evaluate';
const FUNCTION_METHOD = 'Runtime.callFunctionOn';
/** If an expression mentions one of these, its result is redacted. */
const SECRET_WORDS_PATTERN = /cookie|passw|secret|token|credential|storage|\bvalue\b|indexeddb|authorization/i;
const ERROR_CHARS_MAX = 500;
/** Replaces a value that should be a string but is not. */
const NOT_TEXT_MARK = '[not text]';

type ParamsFilter = (params: UntrustedObject) => JsonObject;

const INPUT_FIELDS = [
  'type',
  'x',
  'y',
  'button',
  'buttons',
  'clickCount',
  'modifiers',
  'deltaX',
  'deltaY',
  'pointerType',
  'isKeypad',
  'autoRepeat',
  'location',
  'enabled',
  'ignore',
  'tapCount',
  'duration',
  'scaleFactor',
  'xDistance',
  'yDistance',
  'speed',
];
const inputParams: ParamsFilter = params => plainMembers(params, INPUT_FIELDS);
const addressParams: ParamsFilter = params => ({
  ...plainMembers(params, [
    'frameId',
    'transitionType',
    'browserContextId',
    'newWindow',
    'background',
    'width',
    'height',
    'hidden',
  ]),
  ...(typeof params.url === 'string' ? { url: redactUrl(params.url) } : {}),
  ...(typeof params.referrer === 'string' ? { referrer: redactUrl(params.referrer) } : {}),
});

const PARAMS_FILTERS: Readonly<Record<string, ParamsFilter>> = {
  'Page.navigate': addressParams,
  'Page.reload': params => plainMembers(params, ['ignoreCache', 'loaderId']),
  'Page.navigateToHistoryEntry': params => plainMembers(params, ['entryId']),
  'Page.close': () => ({}),
  'Page.handleJavaScriptDialog': params => ({
    ...plainMembers(params, ['accept']),
    ...(params.promptText === undefined ? {} : { promptText: REDACTED }),
  }),
  'Page.captureScreenshot': params =>
    plainMembers(params, ['format', 'quality', 'fromSurface', 'captureBeyondViewport']),
  'Page.printToPDF': params =>
    plainMembers(params, ['landscape', 'printBackground', 'scale', 'paperWidth', 'paperHeight']),
  [EVALUATE_METHOD]: params => ({
    expression: scanExpression(textAt(params, 'expression') ?? '').redacted,
    ...plainMembers(params, ['awaitPromise', 'returnByValue', 'userGesture', 'contextId', 'uniqueContextId']),
  }),
  [FUNCTION_METHOD]: params => ({
    ...plainMembers(params, ['awaitPromise', 'returnByValue', 'userGesture', 'executionContextId', 'uniqueContextId']),
    functionDeclaration: scanExpression(textAt(params, 'functionDeclaration') ?? '').redacted,
    ...(Array.isArray(params.arguments) ? { arguments: params.arguments.slice(0, 20).map(redactedArgument) } : {}),
  }),
  'Input.dispatchKeyEvent': params => ({ ...inputParams(params), ...keyField(params) }),
  'Input.insertText': () => ({ text: REDACTED }),
  'Input.imeSetComposition': () => ({ text: REDACTED }),
  'Input.dispatchMouseEvent': inputParams,
  'Input.dispatchTouchEvent': params => ({
    ...inputParams(params),
    touchPoints: (Array.isArray(params.touchPoints) ? params.touchPoints : [])
      .slice(0, 10)
      .filter(isObject)
      .map(point => plainMembers(point, ['x', 'y', 'id'])),
  }),
  'Input.dispatchDragEvent': params => ({ ...inputParams(params), data: REDACTED }),
  'Input.cancelDragging': () => ({}),
  'Input.emulateTouchFromMouseEvent': inputParams,
  'Input.synthesizePinchGesture': inputParams,
  'Input.synthesizeScrollGesture': inputParams,
  'Input.synthesizeTapGesture': inputParams,
  'Target.createTarget': addressParams,
  'Target.closeTarget': params => plainMembers(params, ['targetId']),
  'Target.activateTarget': params => plainMembers(params, ['targetId']),
  'Target.createBrowserContext': params => plainMembers(params, ['disposeOnDetach']),
  'Target.disposeBrowserContext': params => plainMembers(params, ['browserContextId']),
  'DOM.setFileInputFiles': params => ({
    files: (Array.isArray(params.files) ? params.files : [])
      .slice(0, 20)
      .map(file => (typeof file === 'string' ? redactedText(file) : NOT_TEXT_MARK)),
  }),
  'Browser.close': () => ({}),
};

export const LOGGED_COMMANDS: ReadonlySet<string> = new Set(Object.keys(PARAMS_FILTERS));

export const commandParams = (method: string, params: UntrustedObject): JsonObject =>
  PARAMS_FILTERS[method]?.(params) ?? {};

/** Returns a named key such as Enter. Characters are not logged, because they would reveal the typed text. */
function keyField(params: UntrustedObject): JsonObject {
  const keyName = textAt(params, 'key');
  if (keyName !== undefined && keyName.length > 1 && /^[A-Z][A-Za-z0-9]+$/.test(keyName)) return { key: keyName };
  return keyName === undefined ? {} : { key: REDACTED };
}

/** Returns the kind of the argument without its value. */
function redactedArgument(argumentValue: unknown): JsonObject {
  if (!isObject(argumentValue)) return {};
  if (argumentValue.objectId !== undefined) return { objectId: REDACTED };
  if (argumentValue.unserializableValue !== undefined) return { unserializableValue: REDACTED };
  return { value: REDACTED };
}

/**
 * Whether all text in the response must be redacted. Always true for function calls, because their result depends on
 * the arguments, and for expressions that are too long to be scanned.
 */
export function mayReturnSecrets(method: string, params: UntrustedObject): boolean {
  const expression = textAt(params, 'expression') ?? '';
  return method === FUNCTION_METHOD || expression.length > SCANNED_CHARS_MAX || SECRET_WORDS_PATTERN.test(expression);
}

/** Returns the logged fields of a response. `responseMessage` is the parsed CDP message. */
export function commandResult(method: string, isSecret: boolean, responseMessage: UntrustedObject): JsonObject {
  const error = objectAt(responseMessage, 'error');
  if (error)
    return {
      error: {
        ...plainMembers(error, ['code']),
        message: redactedText((textAt(error, 'message') ?? '').slice(0, ERROR_CHARS_MAX)),
      },
    };
  const result = objectAt(responseMessage, 'result') ?? {};
  switch (method) {
    case EVALUATE_METHOD:
    case FUNCTION_METHOD:
      return evaluationResult(isSecret, result);
    case 'Page.captureScreenshot':
    case 'Page.printToPDF':
      return {};
    default:
      return {
        ...plainMembers(result, [
          'frameId',
          'loaderId',
          'errorText',
          'isDownload',
          'targetId',
          'browserContextId',
          'success',
        ]),
      };
  }
}

function evaluationResult(isSecret: boolean, result: UntrustedObject): JsonObject {
  const thrownDetails = objectAt(result, 'exceptionDetails');
  const value = objectAt(result, 'result');
  return {
    ...(value ? { result: isSecret ? withoutText(value) : remoteObject(value) } : {}),
    ...(thrownDetails
      ? {
          exceptionDetails: {
            text: redactedText(textAt(thrownDetails, 'text') ?? ''),
            ...withException(thrownDetails, isSecret),
          },
        }
      : {}),
  };
}

function withException(thrownValue: UntrustedObject, isSecret: boolean): JsonObject {
  const exception = objectAt(thrownValue, 'exception');
  if (!exception) return {};
  return { exception: isSecret ? withoutText(exception) : remoteObject(exception) };
}

/** Keeps only the type, and values that reveal nothing: booleans and null. */
function withoutText(object: UntrustedObject): JsonObject {
  const { value } = object;
  const isPlain = typeof value === 'boolean' || value === null;
  return {
    ...plainMembers(object, ['type', 'subtype', 'className']),
    ...(value === undefined ? {} : { value: isPlain ? value : REDACTED }),
  };
}
