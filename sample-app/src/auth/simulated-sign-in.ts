import { Injectable } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import type { Environment } from '../environment.js';

const TIMEOUT_MS = 6_000;

/**
 * Signs users in to the simulator. A real app has nothing like this: the browser goes to the service, and the service has the
 * user authenticated with OAuth 2.0 or OpenID Connect.
 */
@Injectable()
export class SimulatedSignIn {
  constructor(private readonly config: ConfigService<Environment, true>) {}

  /** @returns a sentence for the user if the sign-in failed. The login to the app never fails because of it. */
  async signIn(uid: string): Promise<string | undefined> {
    const simulator = this.config.get<string | undefined>('SIMULATOR_URL');
    if (simulator === undefined) return undefined;
    const response = await fetch(`${simulator}/simulator/sign-in`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ uid }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch(() => undefined);
    if (response?.ok) return undefined;
    const why = response?.status === 409 ? 'the user was deleted there' : 'it does not answer';
    return `You are logged in here, but not signed in to the debate space: ${why}.`;
  }
}
