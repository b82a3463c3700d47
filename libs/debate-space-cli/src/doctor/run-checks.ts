import type { CommandContext } from '../cli-context.js';
import { checkAddress, isOfAddress } from './address.js';
import type { CheckResult } from './check.js';
import { optionProblems } from './option-problems.js';
import { checkService } from './service.js';
import { checkStorage } from './storage.js';
import { checkSecret, checkValues } from './values.js';

/** All checks, one after the other; goes on after a fault with what can still be checked. Touches no user. */
export async function* runChecks({ settings, io }: CommandContext): AsyncGenerator<CheckResult> {
  const known = new Set(settings.problems.map(({ option }) => option));
  const found = await optionProblems({ ...settings, allowInsecureHttp: false });
  const refused = found.filter(({ option }) => !known.has(option));
  yield* checkValues(
    settings,
    refused.filter((problem) => !isOfAddress(problem)),
  );
  const { apiKey, secretKey, applicationName, authUrl } = settings;
  if (!apiKey && !secretKey && !applicationName && !authUrl) return; // nothing is set, and nothing else can be checked
  yield* checkSecret(settings);
  yield* checkAddress(settings, refused.filter(isOfAddress));
  yield* checkService(settings, io.interrupted);
  yield* checkStorage(settings);
}
