import type { Settings } from '../settings.js';
import { isOfAddress, serviceAddress } from './address.js';
import { checkApplicationName, logoutRoute } from './application-name.js';
import { unchecked, type CheckResult } from './check.js';
import { checkClock, checkConnection } from './connection.js';
import { checkKeys, KEY_CHECKS } from './keys.js';
import { optionProblems } from './option-problems.js';
import { Probe } from './probe.js';
import { checkProxy } from './proxy.js';

const SERVICE_CHECKS = ['reachability', 'clock', 'application-name', ...KEY_CHECKS];

/** What only the service can tell. */
export async function* checkService(
  settings: Settings,
  interrupted: AbortSignal,
): AsyncGenerator<CheckResult> {
  const address = serviceAddress(settings);
  if (!address) {
    for (const check of ['proxy', ...SERVICE_CHECKS]) yield unchecked(check, 'there is no usable address');
    return;
  }
  const proxy = checkProxy(address);
  yield proxy;
  if (proxy.ok === false) {
    for (const check of SERVICE_CHECKS) yield unchecked(check, 'there is no usable proxy');
    return;
  }
  const { apiKey, secretKey, applicationName } = settings;
  const probe = new Probe(interrupted);
  try {
    const probed = await probe.ask(logoutRoute(address.authUrl, applicationName ?? ''));
    yield* checkConnection(probed, address.authUrl);
    yield checkClock(probed);
    yield checkApplicationName(probed, applicationName);
    const whyNot = [
      [apiKey === undefined || secretKey === undefined, 'API key or secret key is not set'],
      ['code' in probed, 'there is no connection'],
      // Keys go only where the plugin would send them.
      [(await optionProblems(settings)).some(isOfAddress), 'the keys would travel readable'],
    ] as const;
    const [, reason] = whyNot.find(([applies]) => applies) ?? [];
    if (reason === undefined) yield* checkKeys(probe, address, settings);
    else for (const check of KEY_CHECKS) yield unchecked(check, reason);
  } finally {
    await probe.close();
  }
}
