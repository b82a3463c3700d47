import { describe, expect, it } from '@jest/globals';
import type { z } from 'zod';
import type { DebateSpaceModuleOptions } from './module-options.js';
import { optionsSchema } from './options-schema.js';

/** `true` for types that can stand for each other; `npm run typecheck` fails where they cannot. */
type Same<A, B> = [A, B] extends [B, A] ? true : never;

type Groups = 'session' | 'logout' | 'erasure' | 'http' | 'users';
/** With every option required, so that one that only the other type has is a difference. */
type Complete<T> = { [K in keyof T]-?: K extends Groups ? Required<NonNullable<T[K]>> : T[K] };

type Input = z.input<typeof optionsSchema>;
/** The schema gets the address of the environment as well. */
type Given = DebateSpaceModuleOptions & { authUrl: string };

describe('the schema of the options', () => {
  it('takes what the types of the options take, and knows the same options', () => {
    const isSame: readonly [Same<Given, Input>, Same<Complete<Given>, Complete<Input>>] = [true, true];
    expect(isSame).toEqual([true, true]);
  });
});
