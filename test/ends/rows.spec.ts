import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { judgeAll, promises, type Promised, type Verdict } from '#support/endings/judge.js';
import type { EndingCell } from '#support/endings/endings.js';
import { eachRowOnce, endingCells } from '#support/endings/stacks.js';
import { runInThisContext } from 'node:vm';

// Each row is one sentence with the code of a handler (test/support/endings), and is held to up to four promises. `reported`: the service
// receives a logout of the row's users, and of nobody else. `stored`: before the browser has the whole answer. `same`: the host does as
// it does without the plugin. `contained`: also when something of the plugin is broken.

/** Hosts at a time. */
const LANES = 6;
/** Where sessions are kept or come from in a way of its own. */
const SPECIAL =
  /in the context of another request|registered before Nest|behind another app|by app\.use|by toJSON/;
const isCore = ({ ending }: EndingCell): boolean => (ending as { core?: boolean }).core === true;
/** Whether one request ends the session, and has a whole answer that can wait for the storage. */
const isAnswered = ({ stack, ending }: EndingCell): boolean => {
  const { ends, play, aborts, later, laterOn, path = '/act' } = ending;
  const isLate = later === true || laterOn !== undefined || aborts === true;
  return ends && !play && !isLate && !['job', '/act-events'].includes(path) && !/socket/i.test(stack);
};
/** What a broken plugin does to the host is checked on the core rows here, and on every row by `npm run test:rows`. */
const promisesOf = (cell: EndingCell): readonly Promised[] =>
  isCore(cell) ? promises : promises.filter((name) => name !== 'contained');

/** It hears of errors that nobody handles: Jest gives tests a copy that never does. */
const original = runInThisContext('process') as NodeJS.Process;
const listeners = original.listeners('unhandledRejection');
const errors: string[] = [];
const note = (error: unknown): void => {
  errors.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
};
beforeAll(() => {
  original.removeAllListeners('unhandledRejection').on('unhandledRejection', note);
  original.setUncaughtExceptionCaptureCallback(note);
});
afterAll(() => {
  original.setUncaughtExceptionCaptureCallback(null);
  original.removeAllListeners('unhandledRejection');
  for (const listener of listeners) original.on('unhandledRejection', listener);
});

// `npm run test:rows` plays every row on every stack; `npm run test:matrix` on NestJS 10, 11 and 12.
describe.each<{
  title: string;
  cells: readonly EndingCell[];
  only: (cell: EndingCell) => readonly Promised[];
}>([
  {
    title: 'the ends of the row are reported and stored, the host does the same, and nothing is thrown',
    cells: eachRowOnce,
    only: promisesOf,
  },
  {
    title: 'the ends of the row are reported and stored on a stack of its own',
    cells: endingCells.filter((cell) => SPECIAL.test(cell.stack) && isCore(cell)),
    only: () => ['reported', 'stored'],
  },
])('$title:', ({ cells, only }) => {
  const verdicts = new Map<EndingCell, Verdict>();
  beforeAll(async () => {
    await judgeAll(cells, LANES, { only, uncaught: () => errors.splice(0) }, (cell, verdict) =>
      verdicts.set(cell, verdict),
    );
  }, 600_000);

  it.each(cells.map((cell) => ({ stack: cell.stack, name: cell.ending.name, cell })))(
    '$stack: $name',
    ({ cell }) => {
      const { checked, wrong } = verdicts.get(cell) ?? { checked: [], wrong: ['it was not played'] };
      expect(wrong).toEqual([]);
      const { later = false } = cell.ending;
      const expected = only(cell).filter((name) => name !== 'stored');
      expect(checked.filter((name) => name !== 'stored')).toEqual(expected);
      if (isAnswered(cell)) expect(checked).toContain('stored');
      if (later) expect(checked).not.toContain('stored');
    },
  );

  it('nothing is thrown when the rows are over', () => {
    expect(errors.splice(0)).toEqual([]);
  });
});
