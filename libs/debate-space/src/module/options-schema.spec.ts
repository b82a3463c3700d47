import { describe, expect, it } from '@jest/globals';
import type { InferInput } from 'valibot';
import type { DebateSpaceModuleOptions } from './module-options.js';
import { optionsSchema } from './options-schema.js';

/** `true` for types that can stand for each other; `npm run typecheck` fails where they cannot. */
type Same<A, B> = [A, B] extends [B, A] ? true : never;

type Groups = 'session' | 'logout' | 'erasure' | 'http' | 'users';
/** Of any depth: an array that the schema takes may be one that cannot be changed. */
type Frozen<T> = T extends (...args: never) => unknown ? T : { readonly [K in keyof T]: Frozen<T[K]> };

/** With every option required, so that one that only the other type has is a difference. */
type Complete<T> = { [K in keyof T]-?: K extends Groups ? Required<NonNullable<T[K]>> : T[K] };

type Input = InferInput<typeof optionsSchema>;
/** The schema gets the address of the environment as well. */
type Given = DebateSpaceModuleOptions & { authUrl: string };

describe('the schema of the options', () => {
  it('takes what the types of the options take, and knows the same options', () => {
    const isSame: readonly [
      Same<Frozen<Given>, Frozen<Input>>,
      Same<Frozen<Complete<Given>>, Frozen<Complete<Input>>>,
    ] = [true, true];
    expect(isSame).toEqual([true, true]);
  });
});
