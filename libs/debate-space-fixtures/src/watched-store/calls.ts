import { RequestSessions } from '../request-sessions.js';
import type { ContractKind } from './kinds.js';
import { callsOf, recordCalls, type RecordedCall } from './recorded.js';
import type { Check, Scene } from './watched.js';

type Method = (...args: unknown[]) => unknown;

const sessions = new RequestSessions(false);
const alice = (): object => sessions.of('s1', 'alice');

/** Arguments of a call without its callback. */
export const argumentsOf: Readonly<Record<string, () => readonly unknown[]>> = {
  get: () => ['s1'],
  set: () => ['s1', alice()],
  touch: () => ['s1', alice()],
  destroy: () => ['s1'],
  all: () => [],
  length: () => [],
  ids: () => [],
  clear: () => [],
};

/** Makes a call and waits for the store: for the callback if there is one, and for what it returns. */
export async function settle(call: (callback: Method) => unknown, waits: boolean): Promise<unknown> {
  const seen: unknown[] = [];
  let returned: unknown;
  const answered = new Promise<void>((resolve) => {
    const callback = function (this: unknown, ...results: unknown[]): void {
      seen.push({ count: results.length, failed: results[0] instanceof Error && results[0].message });
      resolve();
    };
    try {
      returned = call(callback);
    } catch (error) {
      seen.push({ threw: String(error) });
      resolve();
    }
  });
  await Promise.resolve(returned).catch((error: unknown) => {
    seen.push({ rejected: String(error) });
    waits = false;
  });
  if (waits) await answered;
  return seen;
}

export const logIn = ({ kind, store }: Scene, ...sids: string[]): Promise<unknown> =>
  Promise.all(
    sids.map((sid) =>
      settle(
        (callback) =>
          methodOf(store, 'set').call(
            store,
            sid,
            sessions.of(sid, 'alice'),
            ...(answers(kind) ? [callback] : []),
          ),
        answers(kind),
      ),
    ),
  );

/** Whether it calls back. */
export const answers = ({ promises, silent }: ContractKind): boolean => !promises && !silent;

export const methodOf = (store: object, name: string): Method => Reflect.get(store, name) as Method;

/** How the callback is given, if at all. */
const shapes: Record<string, (args: readonly unknown[], callback: Method) => readonly unknown[]> = {
  'a callback': (args, callback) => [...args, callback],
  'no callback': (args) => args,
  'undefined for a callback': (args) => [...args, undefined],
  'more arguments after the callback': (args, callback) => [...args, callback, 'more', undefined],
};

const checks = Object.keys(argumentsOf).flatMap((name) =>
  Object.entries(shapes).map(([shape, given]): Check<RecordedCall[]> => {
    const takes = shape === 'a callback' || shape === 'more arguments after the callback';
    return {
      name: `${name} with ${shape} gets the same this and arguments, and ends the same`,
      needs: [name],
      suits: (kind) => takes || !kind.unbearable?.(name, { callback: false, looks: true }),
      prepare: recordCalls,
      observe: async (scene, calls) => {
        const { kind, store } = scene;
        await logIn(scene, 's1');
        calls.length = 0;
        const args = argumentsOf[name]?.() ?? [];
        const waits = takes && (answers(kind) || (kind.silent === true && READS.includes(name)));
        const seen = await settle(
          (callback) => methodOf(store, name).apply(store, [...given(args, callback)]),
          waits,
        );
        return { seen, calls: callsOf(name, calls) };
      },
    };
  }),
);

const READS = ['get', 'all', 'length', 'ids'];

export const callChecks: readonly Check<RecordedCall[]>[] = [
  ...checks,
  ...elsewhere('destroy'),
  ...elsewhere('get'),
];

/** A method that is called on nothing, or on something else. */
function elsewhere(name: string): readonly Check<RecordedCall[]>[] {
  const receivers = { 'no store': undefined, 'a plain object': {} };
  return Object.entries(receivers).map(([receiver, self]) => ({
    name: `${name} called on ${receiver} does the same, throwing or not`,
    needs: [name],
    prepare: recordCalls,
    observe: async (scene, calls) => {
      await logIn(scene, 's1');
      calls.length = 0;
      const seen: unknown[] = [];
      try {
        const { store } = scene;
        const returned = methodOf(store, name).call(self, 's1', () => undefined);
        await Promise.resolve(returned).catch((error: unknown) => seen.push(`rejected ${String(error)}`));
      } catch (error) {
        seen.push(`threw ${String(error)}`);
      }
      return { seen, calls: callsOf(name, calls) };
    },
  }));
}
