// A script that runs in an isolated world of every document. It remembers each field that is, or ever was, a password field,
// and returns those that are in the document. Pages can neither see nor change it.

/** The script; it evaluates to the list. `all`: every editable field, not only password fields. */
export const watchFields = (all: boolean): string => `(${watcher})(${all})`;

/** The global variable with the list that was returned last. */
export const LAST_FIELDS = '__last';

const watcher = `all => {
  const key = '__fields', last = '__last';
  if (globalThis[key]) return globalThis[key]();
  const typed = 'input, textarea, select, [contenteditable]:not([contenteditable="false"])';
  const wanted = all ? typed : 'input[type="password" i]';
  const once = new Set();
  const roots = new Set();
  const keep = element => { once.add(new WeakRef(element)); known.add(element); };
  const known = new WeakSet();
  const look = root => {
    if (!root.querySelectorAll) return;
    if (root.matches?.(wanted) && !known.has(root)) keep(root);
    for (const element of root.querySelectorAll(wanted)) if (!known.has(element)) keep(element);
    if (root.shadowRoot) watch(root.shadowRoot);
    for (const element of root.querySelectorAll('*')) if (element.shadowRoot) watch(element.shadowRoot);
  };
  const changed = records => {
    for (const { type, target, addedNodes, oldValue } of records) {
      if (type === 'childList') for (const node of addedNodes) look(node);
      else if ((oldValue ?? '').toLowerCase() === 'password' || target.matches(wanted)) if (!known.has(target)) keep(target);
    }
  };
  const observer = new MutationObserver(changed);
  const watch = root => {
    if (roots.has(root)) return;
    roots.add(root);
    observer.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ['type', 'contenteditable'], attributeOldValue: true });
    look(root);
  };
  watch(document);
  // Positions of each field since the last call, without the scrolling of the page itself.
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
  addEventListener('scroll', note, { capture: true, passive: true });
  addEventListener('resize', note);
  globalThis[key] = () => {
    changed(observer.takeRecords());
    look(document);
    for (const root of roots) if (root !== document) look(root);
    const list = here();
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
  return globalThis[key]();
}`;
