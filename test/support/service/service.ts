import { DebateSpaceSimulator, type SimulatorOptions } from 'debate-space-simulator';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';

export const keys = {
  apiKey: 'api-key-of-a-test',
  secretKey: 'a secret key of a test, long enough for HS256',
};

/** A service with alice and bob registered. */
export async function startService(options: SimulatorOptions = {}): Promise<DebateSpaceSimulator> {
  return DebateSpaceSimulator.start({
    ...keys,
    applicationName: 'demo',
    users: [{ uid: 'alice' }, { uid: 'bob' }],
    ...options,
  });
}

/** The options that make a host use this service. */
export function using(
  service: DebateSpaceSimulator,
  options: Partial<DebateSpaceModuleOptions> = {},
): DebateSpaceModuleOptions {
  return { ...keys, applicationName: service.applicationName, authUrl: service.url, ...options };
}
