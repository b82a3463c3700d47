import { Store } from 'express-session';
import { argumentsOf, answers, logIn, methodOf, settle } from './calls.js';
import { callsOf, recordCalls, type RecordedCall } from './recorded.js';
import type { Check, Scene } from './watched.js';

type Method = (...args: unknown[]) => unknown;

/** Calls a method of a store that is made of another one, and waits for it. */
const call = ({ kind }: Scene, store: object, name: string, args: readonly unknown[]): Promise<unknown> =>
  settle(
    (callback) =>
      methodOf(store, name).call(
        store,
        ...args,
        ...(answers(kind) || (READS.includes(name) && !kind.promises) ? [callback] : []),
      ),
    answers(kind) || (READS.includes(name) && !kind.promises),
  );

const READS = ['get', 'all', 'length', 'ids'];

/** How hosts make a store of another one. */
const ways: Record<string, (store: object) => object> = {
  'a store made by Object.create': (store) =>
    Object.create(store, { prefix: { value: 'tenant:', enumerable: true } }) as object,
  'a store whose prototype is set to it': (store) => Object.setPrototypeOf({ tenant: 'a' }, store) as object,
};

const made = Object.entries(ways).flatMap(([way, derive]) =>
  Object.keys(argumentsOf).map((name): Check<RecordedCall[]> => ({
    name: `${name} of ${way} runs with that store as this`,
    needs: [name],
    prepare: recordCalls,
    observe: async (scene, calls) => {
      await logIn(scene, 's1');
      const derived = derive(scene.store);
      calls.length = 0;
      const seen = await call(scene, derived, name, argumentsOf[name]?.() ?? []);
      return { seen, calls: callsOf(name, calls) };
    },
  })),
);

export const derivedChecks: readonly Check<RecordedCall[]>[] = [
  ...made,
  {
    name: 'a method that the derived store has of its own is the one that runs, and may call the one behind it',
    needs: ['destroy'],
    prepare: recordCalls,
    observe: async (scene, calls) => {
      await logIn(scene, 's1');
      const seen: unknown[] = [];
      const derived = Object.create(scene.store) as { destroy: Method };
      derived.destroy = function (this: object, ...args): unknown {
        seen.push(this === derived);
        return methodOf(scene.store, 'destroy').apply(this, args);
      };
      calls.length = 0;
      seen.push(await call(scene, derived, 'destroy', ['s1']));
      return { seen, calls: callsOf('destroy', calls) };
    },
  },
  {
    name: 'a property that is set on the derived store stays off the store behind it',
    prepare: recordCalls,
    observe: ({ store }) => {
      const derived = Object.create(store) as Record<string, unknown>;
      derived.destroy = () => undefined;
      derived.tenant = 'a';
      return [Object.keys(derived), Object.hasOwn(derived, 'destroy'), Object.keys(store), 'tenant' in store];
    },
  },
  {
    name: 'a store that delegates to it passes on the same calls',
    needs: ['destroy'],
    prepare: recordCalls,
    observe: async (scene, calls) => {
      await logIn(scene, 's1');
      const wrapper = new DelegatingStore(scene.store);
      calls.length = 0;
      const seen = [
        await call(scene, wrapper, 'get', ['s1']),
        await call(scene, wrapper, 'set', argumentsOf.set?.() ?? []),
        await call(scene, wrapper, 'destroy', ['s1']),
      ];
      return { seen, calls: ['set', 'destroy'].map((name) => callsOf(name, calls)) };
    },
  },
];

/** A wrapper class, as hosts write one to cache or to count. */
class DelegatingStore extends Store {
  constructor(private readonly behind: object) {
    super();
  }

  override get(...args: Parameters<Store['get']>): unknown {
    return methodOf(this.behind, 'get').apply(this.behind, args);
  }
  override set(...args: Parameters<Store['set']>): unknown {
    return methodOf(this.behind, 'set').apply(this.behind, args);
  }
  override destroy(...args: Parameters<Store['destroy']>): unknown {
    return methodOf(this.behind, 'destroy').apply(this.behind, args);
  }
}
