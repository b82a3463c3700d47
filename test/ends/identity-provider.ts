import { jest } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ClientMetadata, Configuration, Provider } from 'oidc-provider';

/** A server that has its address before it has anything to say: identity provider and clients must know each other. */
export class Place {
  private constructor(
    readonly url: string,
    readonly server: Server,
  ) {}

  static async take(): Promise<Place> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Place(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, server);
  }

  serve(listener: RequestListener): void {
    this.server.on('request', listener);
  }

  async leave(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** An identity provider with these clients, at which everybody is alice, and nobody has to consent. */
export async function identityProvider(place: Place, clients: ClientMetadata[]): Promise<Provider> {
  // It has advice for production, as soon as it is loaded.
  for (const level of ['info', 'warn'] as const) jest.spyOn(console, level).mockReturnValue();
  const { Provider } = await import('oidc-provider');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const configuration: Configuration = {
    clients,
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['only for tests'] },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'HS256'] },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true, logoutSource: (ctx, form) => void (ctx.body = form) },
    },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    loadExistingGrant: async ({ oidc }) => {
      const { client, session } = oidc;
      const grant = new provider.Grant({ clientId: client?.clientId, accountId: session?.accountId });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
    // Its own dispatcher refuses to notify loopback addresses.
    fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
  };
  const provider = new Provider(place.url, configuration);
  const answer = provider.callback();
  place.serve((request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void answer(request, response);
    void provider.interactionFinished(request, response, { login: { accountId: 'alice' } });
  });
  return provider;
}
