import type { z } from 'zod';
import type { OptionProblem } from '../errors.js';
import { optionProblem } from '../options/option-problem.js';

const MAX_SHOWN = 12;

/** What the schema found, without a key that was given: a key may also stand in the place of another value or of a name. */
export function schemaProblems(
  issues: readonly z.core.$ZodIssue[],
  { apiKey, secretKey, storageKey }: Readonly<Record<string, unknown>>,
): OptionProblem[] {
  const keys: readonly unknown[] = [apiKey, secretKey, storageKey].flat();
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((name) => unknownOption(issue.path, name, keys));
    const option = issue.path.join('.') || 'options';
    const value = found(issue.input, keys.includes(issue.input));
    return [optionProblem(option, `${issue.message} (found ${value})`)];
  });
}

function unknownOption(path: readonly PropertyKey[], name: string, keys: readonly unknown[]): OptionProblem {
  const isKey = keys.some((key) => typeof key === 'string' && key !== '' && name.includes(key));
  const option = [...path, isKey ? '(a key as a name)' : name].join('.');
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
