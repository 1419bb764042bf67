// What the reference page does in the browser: copy buttons, and the contents show where you are. The page reads without it.

export const SCRIPT = `
for (const button of document.querySelectorAll('.copy')) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.closest('figure').querySelector('code').innerText.trimEnd());
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
}
const menu = document.querySelector('.menu');
menu.addEventListener('click', event => { if (event.target.closest('a')) menu.open = false; });
const links = new Map();
for (const link of document.querySelectorAll('.side .contents a')) links.set(link.hash.slice(1), link);
let current;
const mark = id => {
  const link = links.get(id);
  if (!link || link === current) return;
  current?.removeAttribute('aria-current');
  link.setAttribute('aria-current', 'true');
  const side = link.closest('.side');
  const { top, bottom } = link.getBoundingClientRect();
  if (top < 60 || bottom > innerHeight - 40) side.scrollTo({ top: side.scrollTop + top - innerHeight / 3 });
  current = link;
};
const sections = [...document.querySelectorAll('section[id]')].filter(section => links.has(section.id));
const look = () => {
  let here = sections[0];
  for (const section of sections) if (section.getBoundingClientRect().top < 140) here = section;
  if (here) mark(here.id);
};
let queued = false;
addEventListener('scroll', () => {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; look(); });
}, { passive: true });
look();
`;
