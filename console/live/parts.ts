// The elements of the page, with their types checked.

function find<T extends HTMLElement>(id: string, kind: new () => T): T {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${kind.name} with the id ${id}`);
  return element;
}

export const parts = {
  bar: find('bar', HTMLElement),
  tabs: find('tabs', HTMLElement),
  back: find('back', HTMLButtonElement),
  forward: find('forward', HTMLButtonElement),
  reload: find('reload', HTMLButtonElement),
  url: find('url', HTMLInputElement),
  devtools: find('devtools', HTMLAnchorElement),
  stage: find('stage', HTMLElement),
  screen: find('screen', HTMLElement),
  canvas: find('canvas', HTMLCanvasElement),
  keyField: find('keys', HTMLTextAreaElement),
  behindNotice: find('behind', HTMLElement),
  notice: find('notice', HTMLElement),
  openerNotice: find('followed', HTMLElement),
  openerText: find('followed-text', HTMLElement),
  openerBackButton: find('followed-back', HTMLButtonElement),
  downloads: find('downloads', HTMLUListElement),
  controls: find('controls', HTMLElement),
  state: find('state', HTMLElement),
  keyboard: find('keyboard', HTMLButtonElement),
  control: find('control', HTMLButtonElement),
  dialog: find('dialog', HTMLDialogElement),
  dialogText: find('dialog-text', HTMLElement),
  dialogAnswer: find('dialog-answer', HTMLInputElement),
  dialogCancel: find('dialog-cancel', HTMLButtonElement),
  select: find('select', HTMLElement),
  filesDialog: find('files', HTMLDialogElement),
  filesInput: find('files-input', HTMLInputElement),
} as const;

/** The namespace of SVG elements. */
const SVG = 'http://www.w3.org/2000/svg';

export function icon(path: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 18 18');
  svg.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS(SVG, 'path');
  for (const [name, value] of Object.entries({
    d: path,
    fill: 'none',
    stroke: 'currentColor',
    'stroke-width': '1.6',
    'stroke-linecap': 'round',
    'stroke-linejoin': 'round',
  }))
    line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

export const ICONS = {
  back: 'M11 4 6 9l5 5',
  forward: 'm7 4 5 5-5 5',
  reload: 'M14 9a5 5 0 1 1-1.5-3.5M14 3v3h-3',
  stop: 'm5 5 8 8M13 5l-8 8',
} as const;
