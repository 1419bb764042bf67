// Gets the body from the result of an openapi-fetch call, which also contains the response.

/** `await dataOf(berth.GET(...))` is the body itself. If the request fails, the client throws first. */
export async function dataOf<Data>(pending: Promise<{ data?: Data | undefined; response: Response }>): Promise<Data> {
  const { data, response } = await pending;
  if (data === undefined)
    throw new Error(`${response.url} responded with the status ${response.status} and without a body`);
  return data;
}
