// Pages that change by themselves, to measure the cost of watching and recording.

const page = (html: string): string => `data:text/html,${encodeURIComponent(`<!doctype html>${html}`)}`;

export const MOVING_PAGES = {
  idle: page('<h1>At rest</h1>'),
  /** 2.5 small changes per second, and sometimes a large one. */
  agent: page(
    `<h1 id=h>0</h1><p>${'words on a page '.repeat(400)}</p><script>let n=0;setInterval(()=>{h.textContent=++n;if(n%12===0)scrollTo(0,n%24*40)},400)</script>`,
  ),
  moving: page(
    `<style>p{animation:m 4s linear infinite}@keyframes m{to{transform:translateY(-900px)}}</style><p>${'words on a page '.repeat(1500)}</p>`,
  ),
} as const;
