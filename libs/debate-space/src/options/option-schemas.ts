import * as v from 'valibot';

// Each is a form that several options have. Its message says what the value must be, and goes on after the option's name.

export const oneOf = <T extends string>(...values: readonly T[]) => {
  const named = values.map((value) => `'${value}'`).join(', ');
  return v.picklist(values, `must be ${named.replace(/, ([^,]*)$/, ' or $1')}`);
};

export const yesOrNo = v.boolean('must be true or false');

export const functionOption = <F>() =>
  v.custom<F>((value) => typeof value === 'function', 'must be a function');

/** Longer timers fire immediately. */
export const MAX_MS = 2 ** 31 - 1;

export const whole = (least: number, most: number, of = '') => {
  const message = `must be a whole number${of} from ${least} to ${most}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(least, message), v.maxValue(most, message));
};

export const milliseconds = (least: number) => whole(least, MAX_MS, ' of milliseconds');

/** The length of a day, in milliseconds. */
export const DAY_MS = 24 * 60 * 60 * 1000;

/** For what is no timer but a difference of moments. */
export const long = (least: number) => whole(least, 1000 * 365 * DAY_MS, ' of milliseconds');

export const frozen = <T>() => v.transform((value: T): Readonly<T> => Object.freeze(value));

type Strict<E extends v.ObjectEntries> = v.StrictObjectSchema<E, string>;

type Group<E extends v.ObjectEntries> = v.GenericSchema<
  v.InferInput<Strict<E>>,
  Readonly<v.InferOutput<Strict<E>>>
>;

/**
 * An object with these options and no other. valibot's own `strictObject` also takes arrays, names only the first option that it
 * does not know, and says of a missing option what it says of the object.
 */
export const group = <E extends v.ObjectEntries>(entries: E, message = 'must be an object'): Group<E> => {
  const missing = (name: unknown): string | undefined =>
    v.safeParse(entries[String(name)] ?? v.never(), undefined).issues?.[0]?.message;
  return v.pipe(
    v.custom((value) => !Array.isArray(value), message),
    v.objectWithRest(entries, v.never(), ({ path }) => (path && missing(path[0].key)) ?? message),
    frozen(),
  ) as unknown as Group<E>;
};

/** Nothing is trimmed or replaced: what cannot be sent as it stands is refused. */
export const text = v.pipe(
  v.string('must be a string'),
  v.check((value) => value.trim() === value && value !== '', 'must not be empty or have blanks around it'),
  v.check(
    (value) => value.isWellFormed() && !/\p{Cc}/u.test(value),
    'must not have control characters or lone surrogates',
  ),
);
