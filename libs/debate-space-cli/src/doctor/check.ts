import type { OptionProblem } from 'nestjs-debate-space';

/** What one check found. */
export interface CheckResult {
  /** Its name; stable. */
  readonly check: string;
  /** `null`: it could not be checked, because of what another check found. */
  readonly ok: boolean | null;
  readonly detail: string;
  /** Of a fault: how to fix it. */
  readonly hint?: string;
}

export function fine(check: string, detail: string): CheckResult {
  return { check, ok: true, detail };
}

export function fault(check: string, detail: string, hint: string): CheckResult {
  return { check, ok: false, detail, hint };
}

export function unchecked(check: string, why: string): CheckResult {
  return { check, ok: null, detail: `not checked: ${why}` };
}

export function faultOfOption(check: string, { option, problem, hint }: OptionProblem): CheckResult {
  return fault(check, `${option} ${problem}`, hint);
}
