import { AbortedError, DebateSpaceRequestError } from '../../errors.js';
import { contradictionOf, type Contradiction } from '../http/body.js';
import type { HttpReply } from '../http/exchange.js';
import type { Transport } from '../http/transport.js';

/** The result of one logout notification. */
export interface LogoutAnswer extends Pick<Partial<HttpReply>, 'status' | 'retryAfterMs' | 'clockSkewMs'> {
  /** Why no complete answer came: the system's error code, or `TIMEOUT`. Without a status. */
  readonly reason?: string;
  /** Why the body says that the logout did not happen. */
  readonly contradiction?: Contradiction | undefined;
  /** Whether the signal interrupted it. */
  readonly aborted?: boolean;
}

/** {auth_url}/auth/logout/{application_name} (service-interface.md, section 4.5). */
export function backchannelLogoutUrl(authUrl: string, applicationName: string): string {
  return `${authUrl}/auth/logout/${encodeURIComponent(applicationName)}`;
}

/** Sends POST {auth_url}/auth/logout/{application_name}, once: the queue schedules retries. */
export class LogoutRoute {
  constructor(
    private readonly transport: Transport,
    readonly url: string,
  ) {}

  async send(logoutToken: string, signal: AbortSignal): Promise<LogoutAnswer> {
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const body = `logout_token=${logoutToken}`; // no character of a JWT needs escaping
    const request = { operation: 'logoutUser', method: 'POST', url: this.url, headers, body } as const;
    try {
      const reply = await this.transport.exchange(request, signal);
      const { status, retryAfterMs, clockSkewMs } = reply;
      return { status, retryAfterMs, clockSkewMs, contradiction: contradictionOf(reply) };
    } catch (error) {
      if (!(error instanceof DebateSpaceRequestError)) throw error;
      const { reason } = error;
      return error instanceof AbortedError ? { reason, aborted: true } : { reason };
    }
  }
}
