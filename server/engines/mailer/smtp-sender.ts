// Sends e-mail through the operator's mail server. The library is loaded when the first e-mail is sent.
import type { Secret } from '../../kit/secret.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const SOCKET_TIMEOUT_MS = 20_000;

export interface SmtpServer {
  /** smtp://USER:PASSWORD@HOST:PORT, or smtps:// for TLS from the start. */
  readonly url: Secret;
  readonly from: string;
}

export interface OutgoingMail {
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface MailSender {
  /** Resolves when the mail server has accepted the e-mail. Rejects with the server's response. */
  send(mail: OutgoingMail): Promise<void>;
}

export const smtpSender = ({ url, from }: SmtpServer): MailSender => ({
  send: async ({ id, to, subject, text }) => {
    const { createTransport } = await import('nodemailer');
    const transport = createTransport({
      url: url.reveal(),
      requireTLS: needsTls(url.reveal()),
      ...{
        connectionTimeout: CONNECT_TIMEOUT_MS,
        greetingTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: SOCKET_TIMEOUT_MS,
      },
      ...{ disableFileAccess: true, disableUrlAccess: true },
    });
    try {
      await transport.sendMail({
        ...{ from, to: { name: '', address: to }, subject, text },
        // The id is the same for each attempt, so that the recipient's system recognizes an e-mail that arrives twice.
        messageId: `<${id}@berth>`,
        headers: { 'auto-submitted': 'auto-generated' },
      });
    } finally {
      transport.close();
    }
  },
});

/**
 * Whether TLS is required. A password is sent unencrypted only to this machine. For any other server that gets a
 * password, TLS is required, because an attacker on the network could hide that the server supports it.
 */
export function needsTls(smtpUrl: string): boolean {
  const { username, hostname } = new URL(smtpUrl);
  const isThisMachine = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
  return username !== '' && !isThisMachine;
}
