// The steps of the walk, as fast-check draws and shrinks them: each list begins with the simplest.
import fc from 'fast-check';
import type { Rules } from './oracle.js';

export const BROWSERS = 4;
export const USERS = ['ann', 'ben'] as const;

/** What a handler does to sessions. The store's calls are awaited unless it says so. */
export type Act =
  | 'destroy'
  | 'destroy without waiting'
  | 'regenerate'
  | 'log in'
  | 'remove user'
  | 'clear cookie'
  | 'shorten'
  | 'change'
  | 'end others'
  | 'end all'
  | 'end target';

/** What a request does to its own session, as a list of acts. */
const ownDeeds = {
  'only reads': [],
  'destroys its session': ['destroy'],
  'destroys its session without waiting': ['destroy without waiting'],
  'regenerates its session for nobody': ['regenerate'],
  'removes its user': ['remove user'],
  'changes something else': ['change'],
  'clears its cookie': ['clear cookie'],
  'regenerates its session and logs in': ['regenerate', 'log in'],
  'logs in': ['log in'],
} as const satisfies Readonly<Record<string, readonly Act[]>>;

/** What a request does to other sessions as well. `others` are those of its user, or of the user who logs in. */
const wideDeeds = {
  'ends the session of another browser at the store': ['end target'],
  'ends its user’s other sessions': ['end others'],
  'ends its user’s other sessions, then its own': ['end others', 'destroy'],
  'ends all sessions of its user at the store': ['end all'],
  'ends the user’s other sessions, then logs in': ['end others', 'log in'],
  'ends the user’s other sessions, regenerates its own and logs in': ['end others', 'regenerate', 'log in'],
  'regenerates its session, logs in, then ends the user’s others': ['regenerate', 'log in', 'end others'],
  'shortens its session and saves it': ['shorten', 'change'],
} as const satisfies Readonly<Record<string, readonly Act[]>>;

const deeds = { ...ownDeeds, ...wideDeeds };
export type Deed = keyof typeof deeds;
export const actsOf = (deed: Deed): readonly Act[] => deeds[deed];

export interface RequestStep {
  readonly browser: number;
  readonly deed: Deed;
  /** Who logs in, if the deed has a login; `same`: who is logged in there already. */
  readonly user: 'same' | (typeof USERS)[number];
  /** Whose session a deed at the store ends. */
  readonly target: number;
  /** Which of two instances serves it. */
  readonly via: number;
}

export type Step =
  /** `gone`: the client goes away before the handler acts. */
  | ({ readonly kind: 'request'; readonly gone: boolean } & RequestStep)
  /** Two requests at once. `order`: whose step is next, from arrival to answer; without it, both run freely. */
  | {
      readonly kind: 'pair';
      readonly one: RequestStep;
      readonly other: RequestStep;
      readonly order: readonly boolean[] | undefined;
    }
  /** No request: a script uses the store of one instance. */
  | {
      readonly kind: 'job';
      readonly does: 'destroys a session' | 'destroys unused sessions' | 'clears the store';
      readonly target: number;
      readonly via: number;
    }
  /** A handler shortens `cookie.maxAge`, and its browser makes no request until that time is over. */
  | { readonly kind: 'run out'; readonly browser: number; readonly saves: boolean; readonly via: number }
  /** Longer than a shortened session lives, while all browsers use theirs. */
  | { readonly kind: 'use' };

const browser = fc.nat(BROWSERS - 1);
const via = fc.nat(1);
const names = <Name extends string>(record: Readonly<Record<Name, unknown>>): Name[] =>
  Object.keys(record) as Name[];
const user = fc.constantFrom<RequestStep['user'][]>('same', ...USERS);
const request = (deed: fc.Arbitrary<Deed>) => fc.record({ browser, deed, user, target: browser, via });
const own = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...names(ownDeeds)) },
  { weight: 1, arbitrary: fc.constantFrom('regenerates its session and logs in' as const) },
);
const order = fc.option(fc.array(fc.boolean(), { minLength: 6, maxLength: 12, size: 'max' }), {
  nil: undefined,
  freq: 3,
});

/** Sessions run out, which takes seconds, where that matters. */
export function stepsOf({ expiry }: Pick<Rules, 'expiry'>): fc.Arbitrary<Step[]> {
  const kind = <Kind extends Step['kind']>(name: Kind): fc.Arbitrary<Kind> => fc.constant(name);
  const single = fc
    .tuple(
      request(fc.constantFrom(...names(deeds))),
      fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    )
    .map(([step, gone]) => ({ kind: 'request' as const, ...step, gone }));
  const logIn = request(fc.constantFrom('regenerates its session and logs in', 'logs in'));
  const login = logIn.map((step) => ({ kind: 'request' as const, ...step, gone: false }));
  const pair = fc
    .tuple(request(own), request(own), order, fc.nat(3))
    // Mostly of one browser.
    .map(([one, second, its, apart]) => {
      const other = apart === 3 ? second : { ...second, browser: one.browser };
      return { kind: 'pair' as const, one, other, order: its };
    });
  const does = fc.constantFrom(
    'destroys a session' as const,
    'destroys unused sessions' as const,
    'clears the store' as const,
  );
  const job = fc.record({ kind: kind('job'), does, target: browser, via });
  const runOut = fc.record({ kind: kind('run out'), browser, saves: fc.boolean(), via });
  const use = fc.record({ kind: kind('use') });
  // What a step shrinks to first: so any of them may fall away, and not only the first ones, as lists shrink.
  const nothing = { weight: 1, arbitrary: fc.constant(undefined) };
  const kinds: fc.WeightedArbitrary<Step>[] = [
    { weight: 8, arbitrary: single },
    { weight: 6, arbitrary: login },
    { weight: 6, arbitrary: pair },
    { weight: 3, arbitrary: job },
    ...(expiry
      ? [
          { weight: 1, arbitrary: runOut },
          { weight: 1, arbitrary: use },
        ]
      : []),
  ];
  return fc
    .array(fc.oneof({ withCrossShrink: true }, nothing, ...kinds), {
      minLength: 1,
      maxLength: 24,
      size: 'max',
    })
    .map((list) => list.filter((step) => step !== undefined));
}

/** A step in words. */
export function inWords(step: Step): string {
  switch (step.kind) {
    case 'request':
      return requestInWords(step) + (step.gone ? ', after its client has gone away' : '');
    case 'pair': {
      const turns = step.order?.map((isOne) => (isOne ? '1' : '2')).join('');
      return `at once${turns === undefined ? '' : ` (turns ${turns})`}: 1. ${requestInWords(step.one)}; 2. ${requestInWords(step.other)}`;
    }
    case 'job': {
      const whose = step.does === 'destroys a session' ? ` (of browser ${step.target})` : '';
      return `a job ${step.does}${whose}, at instance ${step.via}`;
    }
    case 'run out':
      return `browser ${step.browser}: a handler shortens maxAge, ${step.saves ? 'saved' : 'touched only'}, at instance ${step.via}; nobody uses a session until it has run out`;
    case 'use':
      return 'all browsers use their sessions for a while';
  }
}

function requestInWords({ browser: number, deed, user: who, target, via: instance }: RequestStep): string {
  const acts = actsOf(deed);
  const name = who === 'same' ? 'who it is' : who;
  const details = [
    ...(acts.includes('log in') ? [`as ${name}`] : []),
    ...(acts.includes('end target') ? [`(browser ${target})`] : []),
    `at instance ${instance}`,
  ];
  return `browser ${number} ${deed} ${details.join(' ')}`;
}
