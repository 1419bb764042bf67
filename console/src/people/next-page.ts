// The page after a sign-in: the path of this service in the address, or the console.

/** Only paths of this service: anyone can make a link to this page. */
export function nextPage(): string {
  const asked = new URLSearchParams(location.search).get('next') ?? '';
  return /^\/(device|console(\/[\w/?=&%-]*)?)$/.test(asked) ? asked : '/console/';
}
