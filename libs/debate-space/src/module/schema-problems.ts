import { getDotPath, type BaseIssue } from 'valibot';
import type { OptionProblem } from '../errors.js';
import { optionProblem } from '../options/option-problem.js';

const MAX_SHOWN = 12;

/** What the schema found, without a key that was given: a key may also stand in the place of another value or of a name. */
export function schemaProblems(
  issues: readonly BaseIssue<unknown>[],
  { apiKey, secretKey, storageKey }: Readonly<Record<string, unknown>>,
): OptionProblem[] {
  const keys: readonly unknown[] = [apiKey, secretKey, storageKey].flat();
  return issues.map((issue) => {
    const path = getDotPath(issue) ?? 'options';
    if (issue.type === 'never') return unknownOption(path, keys);
    return optionProblem(path, `${issue.message} (found ${found(issue.input, keys.includes(issue.input))})`);
  });
}

function unknownOption(path: string, keys: readonly unknown[]): OptionProblem {
  const isKey = keys.some((key) => typeof key === 'string' && key !== '' && path.includes(key));
  const option = isKey ? '(a key as a name)' : path;
  if (option !== 'name' && option !== 'isGlobal') return optionProblem(option, 'is no such option');
  const hint = 'put it beside useFactory, useClass or useExisting';
  return optionProblem(option, 'is not for the factory to give', hint);
}

/** Never a text that could be a key standing in the wrong place. */
function found(value: unknown, hidden: boolean): string {
  if (value === undefined) return 'nothing';
  if (value === '') return 'an empty string';
  if (typeof value === 'string')
    return hidden || value.length > MAX_SHOWN ? `a string of ${value.length} characters` : `'${value}'`;
  if (value === null || typeof value === 'boolean' || (typeof value === 'number' && !hidden))
    return String(value);
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}
