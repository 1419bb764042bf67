// The body of an answer, where openapi-fetch gives it beside the response.

/** `await dataOf(berth.GET(...))`: the body itself. A failure has been thrown before. */
export async function dataOf<Data>(asked: Promise<{ data?: Data | undefined; response: Response }>): Promise<Data> {
  const { data, response } = await asked;
  if (data === undefined) throw new Error(`${response.url} answered ${response.status} without a body`);
  return data;
}
