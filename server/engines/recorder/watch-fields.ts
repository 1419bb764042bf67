// A script that runs in an isolated world of every document. It lists every field that is, or ever was, a password
// field, every field into which the service typed a credential, and every element that shows such a credential. It
// returns the listed fields and elements that are still in the document. Pages can neither see nor change the script.

/**
 * Returns the script, which evaluates to the list of fields and elements. If `all` is set, the list contains every
 * editable field, not only password fields. `secrets` are strings that must not be seen. The list contains every
 * element that shows one of them.
 */
export const watchFieldsScript = (all: boolean, secrets: readonly string[] = []): string =>
  `(${WATCH_SCRIPT})(${all}, ${JSON.stringify(secrets)})`;

/**
 * Names of functions in the isolated world. `__keep` adds a field to the list, `__cover` hides everything on the list,
 * and `__uncover` shows it again. `__cover` and `__uncover` take the secrets.
 */
export const KEEP_FUNCTION = '__keep';
export const COVER_FUNCTION = '__cover';
export const UNCOVER_FUNCTION = '__uncover';

/** The name of the global variable that contains the list that was returned last. */
export const LAST_FIELDS = '__last';

const WATCH_SCRIPT = `(all, secrets) => {
  const key = '__fields', last = '__last';
  if (Object.hasOwn(globalThis, key)) return globalThis[key](secrets);
  const editableSelector = 'input, textarea, select, [contenteditable]:not([contenteditable="false"])';
  const listedSelector = all ? editableSelector : 'input[type="password" i]';
  const once = new Set();
  const roots = new Set();
  const keep = element => { once.add(new WeakRef(element)); known.add(element); };
  const known = new WeakSet();
  const look = root => {
    if (!root.querySelectorAll) return;
    if (root.matches?.(listedSelector) && !known.has(root)) keep(root);
    for (const element of root.querySelectorAll(listedSelector)) if (!known.has(element)) keep(element);
    if (root.shadowRoot) watch(root.shadowRoot);
    for (const element of root.querySelectorAll('*')) if (element.shadowRoot) watch(element.shadowRoot);
  };
  const changed = records => {
    for (const { type, target, addedNodes, oldValue } of records) {
      if (type === 'childList') for (const node of addedNodes) look(node);
      else if ((oldValue ?? '').toLowerCase() === 'password' || target.matches(listedSelector)) if (!known.has(target)) keep(target);
    }
  };
  const observer = new MutationObserver(changed);
  const watch = root => {
    if (roots.has(root)) return;
    roots.add(root);
    observer.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ['type', 'contenteditable'], attributeOldValue: true });
    look(root);
  };
  // Positions that each field has had since the last call. Scrolling of the page itself does not change them.
  const been = new Map();
  const isTop = window === window.top;
  const placeOf = element => {
    const { x, y } = element.getBoundingClientRect();
    return isTop ? [x + scrollX, y + scrollY] : [x, y];
  };
  const here = () => {
    const list = [];
    for (const reference of once) {
      const element = reference.deref();
      if (!element) once.delete(reference);
      else if (element.isConnected) list.push(element);
    }
    return list;
  };
  const note = () => {
    for (const element of here()) {
      const places = been.get(element) ?? [];
      if (places.length < 100) places.push(placeOf(element));
      been.set(element, places);
    }
  };
  // If a page opens a window and the first document of that window is replaced by a document of the same origin, the
  // window keeps this world but loses its listeners.
  const begin = () => {
    if (roots.has(document)) return;
    addEventListener('scroll', note, { capture: true, passive: true });
    addEventListener('resize', note);
    watch(document);
  };
  // A page can give an element a name that hides a member of the document, so the getter is taken from the prototype.
  const documentElement = Object.getOwnPropertyDescriptor(Document.prototype, 'documentElement').get;
  const holds = (text, secrets) => typeof text === 'string' && secrets.some(secret => text.includes(secret));
  const shows = (root, secrets) => {
    let isFound = false;
    const found = element => {
      isFound = true;
      if (element && !known.has(element)) keep(element);
    };
    for (const element of root.querySelectorAll('input, textarea'))
      if (holds(element.value, secrets) || holds(element.placeholder, secrets)) found(element);
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode())
      if (holds(node.data, secrets)) found(node.parentElement ?? root.host);
    if (isFound || !holds((root === document ? documentElement.call(document) : root)?.textContent, secrets)) return;
    // The text is split over several nodes, so the innermost elements that contain all of it are taken.
    for (const element of root.querySelectorAll('*'))
      if (holds(element.textContent, secrets) && ![...element.children].some(child => holds(child.textContent, secrets))) found(element);
  };
  const find = (secrets = []) => {
    changed(observer.takeRecords());
    begin();
    look(document);
    for (const root of roots) if (root !== document) look(root);
    if (secrets.length > 0) for (const root of roots) shows(root, secrets);
    return here();
  };
  globalThis.${KEEP_FUNCTION} = element => { if (!known.has(element)) keep(element); };
  const covered = new Map();
  const isField = element => element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement;
  const cover = ({ style }, isField) => {
    const looks = { 'transition': 'none', 'animation': 'none', ...(isField
      ? { '-webkit-text-security': 'disc', 'background': '#000', 'color': '#000', 'text-shadow': 'none' }
      : { 'visibility': 'hidden' }) };
    for (const [name, look] of Object.entries(looks)) style.setProperty(name, look, 'important');
  };
  const isCovered = element => {
    const { webkitTextSecurity, visibility } = getComputedStyle(element);
    return isField(element) ? webkitTextSecurity === 'disc' || element.type === 'password' : visibility === 'hidden' || element.getClientRects().length === 0;
  };
  // Links and the title are covered too, because a PDF file contains link addresses and the document title.
  const links = new Map();
  let title;
  const coverWords = secrets => {
    for (const root of roots)
      for (const link of root.querySelectorAll('a[href], area[href]'))
        if (!links.has(link) && (holds(link.href, secrets) || holds(link.getAttribute('href'), secrets))) {
          links.set(link, link.getAttribute('href'));
          link.removeAttribute('href');
        }
    const head = documentElement.call(document)?.querySelector('title');
    if (!head || !holds(head.textContent, secrets)) return;
    title = [head, head.textContent];
    head.textContent = '***';
  };
  const uncoverWords = () => {
    for (const [link, href] of links) link.setAttribute('href', href);
    links.clear();
    if (title) title[0].textContent = title[1];
    title = undefined;
  };
  globalThis.${COVER_FUNCTION} = secrets => {
    coverWords(secrets);
    for (const element of find(secrets)) {
      if (!covered.has(element)) covered.set(element, element.getAttribute('style'));
      cover(element, isField(element));
    }
    return here().every(isCovered);
  };
  globalThis.${UNCOVER_FUNCTION} = secrets => {
    const areCovered = find(secrets).every(isCovered);
    uncoverWords();
    for (const [element, style] of covered) {
      if (style === null) element.removeAttribute('style');
      else element.style.cssText = style;
    }
    covered.clear();
    return areCovered;
  };
  globalThis[key] = secrets => {
    const list = find(secrets);
    list.travels = list.map(element => {
      const [x, y] = placeOf(element);
      const from = [0, 0], to = [0, 0];
      for (const [px, py] of been.get(element) ?? []) {
        from[0] = Math.min(from[0], px - x); to[0] = Math.max(to[0], px - x);
        from[1] = Math.min(from[1], py - y); to[1] = Math.max(to[1], py - y);
      }
      return [from[0], from[1], to[0], to[1]];
    });
    been.clear();
    globalThis[last] = list;
    return list;
  };
  return globalThis[key](secrets);
}`;
