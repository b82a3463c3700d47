import { Injectable } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import type { User } from '../login/user.js';

/** What became of a sign-in; unless it is `signed in`, a phrase that says why not. */
export type SignInOutcome =
  'signed in' | 'there is no simulator to sign in to' | 'the user was deleted there' | 'it does not answer';

const TIMEOUT_MS = 3_000;

/**
 * Signs users in to the simulator. In reality there is no such thing in an app: the browser goes to the service, and the
 * service has the user authenticated by this app or its identity provider, with OAuth 2.0 or OpenID Connect.
 */
@Injectable()
export class SingleSignOnStandIn {
  constructor(private readonly config: ConfigService) {}

  async signIn({ uid, name }: User): Promise<SignInOutcome> {
    const simulator = this.config.get<string>('SIMULATOR_URL');
    if (simulator === undefined) return 'there is no simulator to sign in to';
    try {
      const response = await fetch(`${simulator}/simulator/sign-in`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ uid, first_name: name }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.ok) return 'signed in';
      return response.status === 409 ? 'the user was deleted there' : 'it does not answer';
    } catch {
      // The login here must not fail because of the debate space.
      return 'it does not answer';
    }
  }
}
