// The body of an answer. openapi-fetch returns it together with the response.

/** `await dataOf(berth.GET(...))` is the body itself. A failure has already been thrown. */
export async function dataOf<Data>(asked: Promise<{ data?: Data | undefined; response: Response }>): Promise<Data> {
  const { data, response } = await asked;
  if (data === undefined) throw new Error(`${response.url} answered ${response.status} without a body`);
  return data;
}
