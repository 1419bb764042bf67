// One operation as a section of the reference: what it does, what goes in, what comes out, what may go wrong.
import type { TSchema } from 'typebox';
import { catalogueEntry } from '../../../../contract/errors.ts';
import { headerName, propertiesOf } from '../../../../contract/openapi.ts';
import type { Operation } from '../../../../contract/operation.ts';
import {
  errorsOf,
  isRepeatable,
  type OperationId,
  operation,
  optionalHeadersOf,
  pathsOf,
} from '../../../../contract/operations.ts';
import { exampleOf, fieldList } from './fields.ts';
import { anchor, colouredJson, colouredShell, escapeText, prose } from './html.ts';

const CREDENTIALS: Readonly<Record<Operation['credential'], string>> = {
  public: 'No credential',
  agentKey: 'Agent key',
  account: 'Personal access token',
  connect: "Session's signing key, or agent key",
};

const EXAMPLE_IDS: Readonly<Record<string, string>> = { id: '$ID', appId: '$APP_ID', keyId: '$KEY_ID' };

const NAMES: Readonly<Record<string, object>> = {
  Applications: { name: 'Shop agent', status: 'active' },
  'Agent keys': {
    name: 'nightly',
    prefix: 'bak_x7Qk',
    key: 'bak_x7Qk…',
    scopes: ['browsers:read', 'browsers:write', 'browsers:connect'],
    status: 'active',
  },
  Tokens: {
    name: 'ci',
    prefix: 'bpt_x7Qk',
    token: 'bpt_x7Qk…',
    kind: 'personal',
    scopes: ['applications:read', 'keys:write'],
    status: 'active',
  },
  Compatibility: { name: 'Shop agent', success: true, available: false },
  Service: { name: 'Berth', status: 'ok', checks: [{ name: 'database', ok: true }] },
};

/** Connection fields are in some answers only. */
const CONNECT_FIELDS = ['connectUrl', 'seleniumRemoteUrl', 'signingKey'];
const CONNECT_FIELDS_SHOWN: ReadonlySet<OperationId> = new Set(['createSession', 'readSession']);

const REPEATABLE = 'After a lost answer send it again with the same <code>Idempotency-Key</code> only, or read back.';
const ONCE = 'After a lost answer read back; do not send it again.';

export function operationSection(id: OperationId, baseUrl: string): string {
  const it = operation(id);
  return `<section class="operation" id="${id}">
<div class="about">
<h3><a class="self" href="#${id}">${escapeText(it.summary)}</a></h3>
<p class="route">${methodBadge(it.method)}<code class="path">${pathWords(it.path)}</code></p>
<p>${prose(it.description)}</p>
${facts(id, it)}
${part('Path', it.params, true)}${part('Query', it.query)}${headersOf(id, it)}${part('Body', it.body)}${uploadOf(it)}
${answersOf(it)}
${errorsSection(id)}
</div>
<div class="examples">
${codeBlock('Request', colouredShell(curl(it, baseUrl)))}
${answerExample(id, it)}
</div>
</section>`;
}

export const methodBadge = (method: string): string =>
  `<span class="method ${method.toLowerCase()}">${method === 'DELETE' ? 'DEL' : method}</span>`;

const pathWords = (path: string): string =>
  escapeText(path)
    .replaceAll('/', '/<wbr>')
    .replace(/\{(\w+)\}/g, '<var>{$1}</var>');

function facts(id: OperationId, it: Operation): string {
  const also = pathsOf(id, true).slice(1);
  const rows = [
    ['Credential', escapeText(CREDENTIALS[it.credential])],
    ...(it.scopes ? [['Scope', it.scopes.map(scope => `<code>${scope}</code>`).join(' or ')]] : []),
    ...(it.isWrite ? [['Write', isRepeatable(id) ? REPEATABLE : ONCE]] : []),
    ...(also.length > 0 ? [['Also at', also.map(({ path }) => `<code>${pathWords(path)}</code>`).join('<br>')]] : []),
  ];
  return `<dl class="facts">${rows.map(([name, words]) => `<div><dt>${name}</dt><dd>${words}</dd></div>`).join('')}</dl>`;
}

const part = (title: string, schema: Operation['body'], allRequired = false): string =>
  schema && hasFields(schema)
    ? `<h4>${title}</h4>${title === 'Body' ? about(schema) : ''}${fieldList(schema, allRequired)}`
    : '';

const uploadOf = ({ upload }: Operation): string =>
  upload
    ? `<h4>Body</h4><p><code>multipart/form-data</code> with one part, a file named <code>file</code>: ${prose(upload.description)}</p>`
    : '';

function headersOf(id: OperationId, { headers }: Operation): string {
  const optional = optionalHeadersOf(id);
  const lists = [
    ...(headers ? [fieldList(headers, true, headerName)] : []),
    ...(hasFields(optional) ? [fieldList(optional, false, headerName)] : []),
  ];
  return lists.length > 0 ? `<h4>Headers</h4>${lists.join('')}` : '';
}

const hasFields = (schema: TSchema): boolean => Object.keys(propertiesOf(schema)).length > 0;

const about = (schema: TSchema): string =>
  'description' in schema ? `<p>${prose(String(schema.description))}</p>` : '';

function answersOf({ responses }: Operation): string {
  const rows = Object.entries(responses).map(([status, { description, schema, headers }]) => {
    const headerRows = Object.entries(headers ?? {}).map(
      ([name, words]) => `<p class="header"><code>${escapeText(name)}</code> ${prose(words)}</p>`,
    );
    const inner = schema && 'items' in schema ? (schema.items as TSchema) : schema;
    const fields = inner && hasFields(inner) ? foldedFields(inner) : '';
    return `<div class="answer"><p><span class="status ok">${status}</span> ${prose(description)}</p>${headerRows.join('')}${fields}</div>`;
  });
  return `<h4>Answer</h4>${rows.join('')}`;
}

const foldedFields = (schema: TSchema): string =>
  `<details class="nested"><summary>${Object.keys(propertiesOf(schema)).length} fields</summary>${fieldList(schema)}</details>`;

function errorsSection(id: OperationId): string {
  const codes = errorsOf(id);
  const rows = codes.map(code => {
    const { status, summary, whatToDo } = catalogueEntry(code);
    return `<tr><td><span class="status">${status}</span></td><td><a href="#error-${anchor(code)}"><code>${code}</code></a></td><td>${prose(summary)} <span class="cure">${prose(whatToDo)}</span></td></tr>`;
  });
  return `<details class="errors"><summary>${codes.length} ${codes.length === 1 ? 'error' : 'errors'}<span class="codes">${codes.map(escapeText).join(' · ')}</span></summary><table>${rows.join('')}</table></details>`;
}

// ---- examples ------------------------------------------------------------------------------------------------------

/** Each line on its own, so that a long one wraps with a hanging indent. Colours never span lines. */
const lines = (code: string): string =>
  code
    .split('\n')
    .map(line => `<span class="l">${line}</span>`)
    .join('');

export const codeBlock = (title: string, inner: string): string =>
  `<figure class="code"><figcaption><span>${title}</span><button type="button" class="copy" hidden>Copy</button></figcaption><pre tabindex="0"><code>${lines(inner)}</code></pre></figure>`;

function curl({ method, path, credential, body, bodyExample, headers, upload }: Operation, baseUrl: string): string {
  const url = baseUrl + path.replace(/\{(\w+)\}/g, (_, name: string) => EXAMPLE_IDS[name] ?? '$ID');
  if (path.endsWith('/connect')) return `# Give the whole connectUrl to a CDP client\n"$CONNECT_URL"`;
  const query = credential === 'connect' ? '?signingKey=$SIGNING_KEY' : '';
  const lines = [
    `curl${method === 'GET' ? '' : ` -X ${method}`} "${url}${query}"`,
    ...(credential === 'agentKey' ? ['  -H "Authorization: Bearer $BERTH_KEY"'] : []),
    ...(credential === 'account' ? ['  -H "Authorization: Bearer $BERTH_TOKEN"'] : []),
    ...(upload ? [`  -F "file=@${upload.example}"`] : []),
    ...(headers ? [`  -H 'If-Match: "1"'`] : []),
    ...(body && bodyExample !== undefined
      ? ['  -H "Content-Type: application/json"', `  -d '${JSON.stringify(bodyExample)}'`]
      : []),
  ];
  return lines.join(' \\\n');
}

function answerExample(id: OperationId, { tag, responses }: Operation): string {
  const [status, answer] = Object.entries(responses)[0] ?? [];
  if (!answer?.schema) return '';
  const value = exampleOf(answer.schema, {
    samples: { ...NAMES[tag], ...(id === 'updateSession' ? { status: 'COMPLETED' } : {}) },
    leaveOut: [
      ...(tag === 'Sessions' && !CONNECT_FIELDS_SHOWN.has(id) ? CONNECT_FIELDS : []),
      ...(tag === 'Sessions' && id !== 'createSession' ? ['warnings'] : []),
    ],
  });
  return codeBlock(`Answer <span class="status ok">${status}</span>`, colouredJson(value));
}
