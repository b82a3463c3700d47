import { retryAfterMs } from './backoff.js';
import type { Transport } from './transport.js';

/** What came of one logout notification. */
export interface LogoutAnswer {
  /** Absent when no whole answer came. */
  readonly status?: number;
  /** Why not: the system's error code, or `TIMEOUT`. */
  readonly reason?: string;
  /** Whether it was broken off by the signal. */
  readonly aborted?: boolean;
  readonly retryAfterMs?: number;
  /** The service's clock minus this one's, in milliseconds, by the `Date` of its answer. */
  readonly clockSkewMs?: number;
}

/** {auth_url}/auth/logout/{application_name} (service-interface.md, section 4.5). */
export function backchannelLogoutUrl(authUrl: string, applicationName: string): string {
  return `${authUrl}/auth/logout/${encodeURIComponent(applicationName)}`;
}

/** POST {auth_url}/auth/logout/{application_name}: one request, no retry – when to try again is the outbox's to say. */
export class LogoutRoute {
  readonly #transport: Transport;
  readonly #url: string;

  constructor(transport: Transport, url: string) {
    this.#transport = transport;
    this.#url = url;
  }

  async send(logoutToken: string, signal: AbortSignal): Promise<LogoutAnswer> {
    const exchange = await this.#transport.exchange(
      {
        method: 'POST',
        url: this.#url,
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ logout_token: logoutToken }).toString(),
      },
      signal,
    );
    if ('failure' in exchange) {
      const { reason, kind } = exchange.failure;
      return kind === 'aborted' ? { reason, aborted: true } : { reason };
    }
    const { reply } = exchange;
    const date = reply.header('date');
    const serverNow = Date.parse(date ?? '');
    return {
      status: reply.status,
      retryAfterMs: retryAfterMs(reply.header('retry-after'), date),
      clockSkewMs: Number.isNaN(serverNow) ? undefined : serverNow - Date.now(),
    };
  }
}
