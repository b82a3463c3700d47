import type { CommandContext } from '../cli-context.js';
import { checkAddress, ofAddresses } from './address.js';
import type { CheckResult } from './check.js';
import { optionProblems } from './option-problems.js';
import { checkService } from './service.js';
import { checkStorage } from './storage.js';
import { checkSecret, checkValues } from './values.js';

/** All checks, one after the other; goes on after a fault with what can still be checked. Touches no user. */
export async function* runChecks({ settings, io }: CommandContext): AsyncGenerator<CheckResult> {
  const isSet = (problem: string): boolean =>
    !settings.problems.some((told) => told.split(' ')[0] === problem.split(' ')[0]);
  const refused = (await optionProblems({ ...settings, allowInsecureHttp: false })).filter(isSet);
  const [addresses, others] = ofAddresses(refused);
  yield* checkValues(settings, others);
  yield* checkSecret(settings);
  yield* checkAddress(settings, addresses);
  yield* checkService(settings, io.interrupted);
  yield* checkStorage(settings);
}
