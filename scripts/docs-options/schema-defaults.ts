import { inspect } from 'node:util';
import { parse } from 'valibot';
import { optionsSchema } from '../../libs/debate-space/src/module/options-schema.js';

const REQUIRED = {
  apiKey: 'key',
  secretKey: 'key',
  applicationName: 'name',
  authUrl: 'https://debate.example',
};
const DAY_MS = 24 * 60 * 60 * 1000;

/** The default of an option as text, when the schema has one that is data: not a function, nor something to open. */
export function schemaDefault(path: string): string | undefined {
  if (path in REQUIRED) return undefined;
  const options: unknown = parse(optionsSchema, REQUIRED);
  const value = path.split('.').reduce((at, name) => (at as Record<string, unknown>)[name], options);
  if (!isData(value)) return undefined;
  const text = inspect(value, { numericSeparator: true, breakLength: Infinity });
  return `\`${text}\`${path.endsWith('Ms') ? ages([value].flat()) : ''}`;
}

function isData(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isData);
  return ['string', 'number', 'boolean'].includes(typeof value);
}

/** Of milliseconds that are whole days, what a person would say. */
function ages(values: readonly unknown[]): string {
  const days = values.map((value) => Number(value) / DAY_MS);
  if (!days.every(Number.isInteger)) return '';
  return ` (${days.map((count) => (count % 365 === 0 ? inUnits(count / 365, 'year') : inUnits(count, 'day'))).join(', ')})`;
}

function inUnits(count: number, unit: 'year' | 'day'): string {
  return count.toLocaleString('en-US', { style: 'unit', unit, unitDisplay: 'long' });
}
