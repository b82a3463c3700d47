import type { OptionProblem } from '../errors.js';

/** Of an option that is refused: what it is, or where it comes from. The command line shows the same. */
export const optionHints = {
  apiKey: 'copy it from the administration panel, Configuration > General',
  secretKey: 'copy it from the administration panel, Configuration > General',
  applicationName: 'it is the last part of the logout route, {auth_url}/auth/logout/{application_name}',
  authUrl: 'it is the host root of the service, such as https://debate.example.org',
  storageKey: 'make one with: openssl rand -base64 32',
  'logout.issuer': 'leave it out for the application name',
  'http.adapter': "leave it out for the plugin's own",
} as const;

/** @param option also one of several values of an option, as in `storageKey.1`; its hint is that of the option */
export function optionProblem(option: string, problem: string, hint?: string): OptionProblem {
  const [name = ''] = option.split(/\.\d/, 1);
  const hints: Readonly<Record<string, string>> = optionHints;
  return { option, problem, hint: hint ?? hints[name] ?? 'see docs/options.md' };
}
