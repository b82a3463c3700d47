import { expect, it } from '@jest/globals';
import * as nestCommon from '@nestjs/common';
import * as plugin from 'nestjs-debate-space';
import { pageOf, runSnippet } from 'debate-space-fixtures/docs-snippets.js';

type RetryParked = new (outbox: Pick<plugin.DebateSpaceOutbox, 'parked' | 'retry'>) => {
  run(): Promise<void>;
};

it.each([0, 1, 1000, 2500])(
  'the runbook retries each parked logout once, those that stay parked among them (%d)',
  async (count) => {
    const modules = { '@nestjs/common': nestCommon, 'nestjs-debate-space': plugin };
    const { RetryParked } = runSnippet(pageOf('docs/operations.md'), 'src/retry-parked.ts', modules);
    const ids = Array.from({ length: count }, (_, n) => `logout-${n}`);
    const parked = new Set(ids);
    const retried: string[] = [];
    const outbox = {
      parked: ({ limit = 100, skip = 0 } = {}) =>
        Promise.resolve([...parked].slice(skip, skip + limit).map((id) => ({ id })) as plugin.ParkedLogout[]),
      retry: (id: string) => {
        retried.push(id);
        return Promise.resolve(Number(id.slice(-1)) > 0 && parked.delete(id)); // the others cannot be read
      },
    };
    await new (RetryParked as RetryParked)(outbox).run();
    expect(retried).toEqual(ids);
  },
);
