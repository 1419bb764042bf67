// Where a sign-in goes on to: a path of this service that the address names, or the console.

/** Only paths of this service: anyone can make a link to this page. */
export function nextPage(): string {
  const asked = new URLSearchParams(location.search).get('next') ?? '';
  return /^\/(device|console(\/[\w/?=&%-]*)?)$/.test(asked) ? asked : '/console/';
}
