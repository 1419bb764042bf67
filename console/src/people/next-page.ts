// The page to show after a sign-in: the path in the parameter `next`, or the console.

/** Returns only paths of this service, because anyone can link to this page. */
export function nextPage(): string {
  const requestedPath = new URLSearchParams(location.search).get('next') ?? '';
  return /^\/(device|console(\/[\w/?=&%-]*)?)$/.test(requestedPath) ? requestedPath : '/console/';
}
