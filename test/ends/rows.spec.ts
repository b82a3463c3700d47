import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { judgeAll, promises, type JudgeOptions, type Verdict } from '#support/endings/judge.js';
import { eachRowOnce, endingCells } from '#support/endings/stacks.js';
import { originalProcess } from '#support/process/original-process.js';

/** Hosts at a time. */
const LANES = 6;
/** Where sessions are kept or come from in a way of its own: the rows that may tell it, and two of the promises. */
const SPECIAL =
  /in the context of another request|registered before Nest|behind another app|by app\.use|by toJSON/;

const original = originalProcess();
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
describe.each<{ title: string; cells: typeof endingCells; options: JudgeOptions }>([
  {
    title: 'the ends of the row are told and stored, the host does the same, and nothing is thrown',
    cells: eachRowOnce,
    options: { only: promises },
  },
  {
    title: 'the ends of the row are told and stored on a stack of its own',
    cells: endingCells.filter(
      ({ stack, ending }) => SPECIAL.test(stack) && (ending as { core?: boolean }).core === true,
    ),
    options: { only: ['told', 'stored'] },
  },
])('$title:', ({ cells, options }) => {
  const verdicts = new Map<unknown, Verdict>();
  beforeAll(async () => {
    await judgeAll(cells, LANES, { ...options, uncaught: () => errors.splice(0) }, (cell, verdict) =>
      verdicts.set(cell, verdict),
    );
  }, 600_000);

  it.each(cells.map((cell) => ({ stack: cell.stack, name: cell.ending.name, cell })))(
    '$stack: $name',
    ({ cell }) => {
      const { checked, wrong } = verdicts.get(cell) ?? { checked: [], wrong: ['it was not played'] };
      expect(wrong).toEqual([]);
      const { later = false } = cell.ending;
      const expected = options.only?.filter((name) => name !== 'stored');
      expect(checked.filter((name) => name !== 'stored')).toEqual(expected);
      if (later) expect(checked).not.toContain('stored');
    },
  );

  it('nothing is thrown when the rows are over', () => {
    expect(errors.splice(0)).toEqual([]);
  });
});
