// The script of the docs pages: the search, the copy buttons, and the mark at the current section. Pages can be read
// without this script.
const stored = localStorage.getItem('berth.theme');
if (stored === 'light' || stored === 'dark') document.documentElement.dataset.theme = stored;

const COPIED_SHOWN_MS = 1500;
const SHOWN_MAX = 8;

for (const button of document.querySelectorAll('.copy')) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.closest('figure').querySelector('code').innerText.trimEnd());
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, COPIED_SHOWN_MS);
  });
}

// ---- on this page ----------------------------------------------------------------------------------------------------

const links = new Map([...document.querySelectorAll('.here a')].map(link => [link.hash.slice(1), link]));
const headings = [...document.querySelectorAll('article h2[id], article h3[id]')].filter(one => links.has(one.id));
const mark = () => {
  const passed = headings.filter(heading => heading.getBoundingClientRect().top < 140);
  const current = links.get((passed.at(-1) ?? headings[0])?.id);
  for (const link of links.values())
    if (link === current) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
};
if (headings.length > 0) {
  let queued = false;
  const look = () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      mark();
    });
  };
  addEventListener('scroll', look, { passive: true });
  mark();
}

// ---- search ----------------------------------------------------------------------------------------------------------

const box = document.querySelector('.search');
const field = box.querySelector('input');
const list = box.querySelector('ul');
const source = document.querySelector('script[data-search]').dataset.search;
let index;
let chosen = -1;

const load = async () => {
  if (index) return index;
  const response = await fetch(source);
  if (!response.ok) throw new Error(`${source}: ${response.status}`);
  index = await response.json();
  return index;
};

/** Every word must be found. A match in the title or the heading of a page scores higher than a match in the text. */
const find = (entries, words) =>
  entries
    .map(entry => {
      const [, title, heading, text] = entry.map(part => part.toLowerCase());
      let worth = 0;
      for (const word of words) {
        const here = (title.includes(word) ? 6 : 0) + (heading.includes(word) ? 4 : 0) + (text.includes(word) ? 1 : 0);
        if (here === 0) return { entry, worth: 0 };
        worth += here;
      }
      return { entry, worth };
    })
    .filter(({ worth }) => worth > 0)
    .sort((a, b) => b.worth - a.worth)
    .slice(0, SHOWN_MAX)
    .map(({ entry }) => entry);

const option = ([address, title, heading], at) => {
  const item = document.createElement('li');
  item.setAttribute('role', 'option');
  item.id = `found-${at}`;
  const link = document.createElement('a');
  link.href = address;
  link.tabIndex = -1;
  const name = document.createElement('span');
  name.textContent = heading || title;
  link.append(name);
  if (heading) {
    const page = document.createElement('small');
    page.textContent = title;
    link.append(page);
  }
  item.append(link);
  return item;
};

const show = open => {
  list.hidden = !open;
  field.setAttribute('aria-expanded', String(open));
};

const choose = at => {
  chosen = at;
  [...list.children].forEach((item, position) => {
    item.setAttribute('aria-selected', String(position === at));
  });
  if (at >= 0) field.setAttribute('aria-activedescendant', `found-${at}`);
  else field.removeAttribute('aria-activedescendant');
};

const search = async () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return show(false);
  const found = find(await load(), words);
  list.replaceChildren(...found.map(option));
  if (found.length === 0) {
    const none = document.createElement('li');
    none.className = 'none';
    none.setAttribute('role', 'option');
    none.setAttribute('aria-disabled', 'true');
    none.textContent = 'Nothing found';
    list.append(none);
  }
  choose(found.length > 0 ? 0 : -1);
  show(true);
};

box.hidden = false;
field.addEventListener('focus', load);
field.addEventListener('input', search);
field.addEventListener('keydown', event => {
  const count = list.querySelectorAll('a').length;
  if (event.key === 'Escape') {
    show(false);
    field.blur();
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault();
    if (count > 0) choose((chosen + (event.key === 'ArrowDown' ? 1 : count - 1)) % count);
  } else if (event.key === 'Enter') list.children[chosen]?.querySelector('a')?.click();
});
document.addEventListener('click', event => {
  if (!box.contains(event.target)) show(false);
});
document.addEventListener('keydown', event => {
  const typing = event.target.closest('input, textarea, select');
  if (event.key !== '/' || typing) return;
  event.preventDefault();
  field.focus();
});
