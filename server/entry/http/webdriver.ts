// The Selenium address. WebDriver is not supported. Every request gets an error in the format of WebDriver.
import type { FastifyInstance } from 'fastify';

const PATH = '/v1/browsers/webdriver';
const NOT_IMPLEMENTED = 501;

const REFUSAL = JSON.stringify({
  value: {
    error: 'unsupported operation',
    message: 'Berth does not support WebDriver. Control the session over CDP with its connectUrl.',
    stacktrace: '',
  },
});

export function refuseWebDriver(app: FastifyInstance): void {
  for (const url of [PATH, `${PATH}/*`])
    app.all(url, {
      // Answered before the body is read, because the body may have any type and size.
      onRequest: async (_, reply) => reply.code(NOT_IMPLEMENTED).type('application/json; charset=utf-8').send(REFUSAL),
      handler: async () => REFUSAL,
    });
}
