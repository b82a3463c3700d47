import { variables } from '../variables.js';
import { fault, fine, unchecked, type CheckResult } from './check.js';
import type { Probed, ProbeRequest } from './probe.js';

/** The logout route (service-interface.md, section 4.5), without a token: nobody can be logged out by it. */
export function logoutRoute(authUrl: string, applicationName: string): ProbeRequest {
  return { method: 'POST', url: `${authUrl}/auth/logout/${encodeURIComponent(applicationName)}`, form: {} };
}

/** By what the logout route answers: a missing token is refused only where there is such an application. */
export function checkApplicationName(probed: Probed, applicationName: string | undefined): CheckResult {
  const check = 'application-name';
  if (applicationName === undefined) return unchecked(check, 'there is none');
  if ('code' in probed) return unchecked(check, 'there is no connection');
  const { status } = probed;
  if (status === 404) {
    return fault(
      check,
      'the service has no logout route for this application name (404)',
      `Compare ${variables.applicationName} with the logout route that the service shows, {auth_url}/auth/logout/{application_name}; if it is right, compare ${variables.authUrl}.`,
    );
  }
  if (status >= 300 && status < 400) {
    return fault(
      check,
      `the logout route answers with a redirect (${status}), which the plugin never follows`,
      `Give the address that it leads to as ${variables.authUrl}.`,
    );
  }
  if (status >= 500 || status === 405 || status === 429)
    return unchecked(check, `the service answers ${status}`);
  return fine(check, `the logout route exists (${status} without a token)`);
}
