// A mail server on a loopback port for tests. It accepts messages as in RFC 5321, or refuses them if `refusal` is set.
// It does not support TLS.
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { after } from 'node:test';

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body as they were sent, with dots unstuffed. */
  readonly source: string;
}

export interface MailServer {
  readonly url: string;
  readonly mails: readonly ReceivedMail[];
  /** The verbs of the commands that clients sent, without arguments. */
  readonly commands: readonly string[];
  /** The response to RCPT, for example `451 4.3.0 later`. If undefined, messages are accepted. */
  refusal: string | undefined;
  /** Whether the server accepts connections without responding. */
  isSilent: boolean;
}

/** Starts a mail server that is closed at the end of the test file. */
export async function startMailServer(): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  const commands: string[] = [];
  const sockets = new Set<Socket>();
  const listener = createServer(socket => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    if (!server.isSilent) serve(socket, server, mails, commands);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (typeof address !== 'object' || !address)
    throw new Error('the mail server has no port, because it is not listening');
  const server: MailServer = {
    ...{ url: `smtp://127.0.0.1:${address.port}`, mails, commands },
    ...{ refusal: undefined, isSilent: false },
  };
  after(() => {
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  return server;
}

function serve(socket: Socket, server: MailServer, mails: ReceivedMail[], commands: string[]): void {
  const reply = (line: string): void => void socket.write(`${line}\r\n`);
  const envelope = { from: '', to: [] as string[] };
  let body: string[] | undefined;
  reply('220 mail.test ESMTP');
  createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY }).on('line', line => {
    if (body) {
      if (line !== '.') return void body.push(line.replace(/^\./, ''));
      mails.push({ ...envelope, source: body.join('\n') });
      body = undefined;
      return reply('250 2.0.0 taken');
    }
    const verb = line.slice(0, 4).toUpperCase();
    commands.push(verb);
    if (verb === 'EHLO') return reply('250-mail.test\r\n250-AUTH PLAIN\r\n250 8BITMIME');
    if (verb === 'AUTH') return reply('535 5.7.8 wrong user name or password');
    if (verb === 'MAIL') envelope.from = addressIn(line);
    if (verb === 'RCPT' && server.refusal) return reply(server.refusal);
    if (verb === 'RCPT') envelope.to = [...envelope.to, addressIn(line)];
    if (verb === 'DATA') body = [];
    if (verb === 'DATA') return reply('354 go on');
    if (verb !== 'QUIT') return reply('250 2.0.0 ok');
    reply('221 2.0.0 bye');
    socket.end();
  });
}

const addressIn = (line: string): string => /<(.*?)>/.exec(line)?.[1] ?? '';
