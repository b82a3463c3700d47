import type { Command } from 'commander';
import type { DebateSpaceErasures, ErasureStatus } from 'nestjs-debate-space';
import { confirm } from '../confirmation.js';
import {
  RECEIPT_COLUMNS,
  receiptLine,
  STATUS_COLUMNS,
  statusLine,
  statusText,
  watchedText,
} from '../erasure-text.js';
import { addExamples } from '../cli-context.js';
import { Failure } from '../failure.js';
import type { CliContext } from '../cli-context.js';
import { action } from '../plugin.js';
import { requireErased } from '../erasure-text.js';
import { counted, shown } from '../output.js';

/** What became of erasures, and what is to become of them. Sends nothing itself. */
export function addErasures(program: Command, cli: CliContext): void {
  const group = program.command('erasures').description('see and steer erasures that were requested');
  addExamples(
    group,
    'erasures list',
    'erasures status GDPR-2026-11 --watch',
    'erasures receipts GDPR-2026-11 --json > receipts.ndjson',
    'erasures receipts --uid 4711',
    'erasures retry GDPR-2026-11',
  );
  const needs = { worker: false, shared: true };

  group
    .command('list')
    .description('all references, the newest first')
    .action(
      action(cli, needs, async ({ erasures }, context) => {
        const count = await context.output.each(erasures.list(), statusLine, STATUS_COLUMNS);
        if (count === 0) context.output.note('There are no erasures.');
      }),
    );

  group
    .command('status')
    .description('how a reference stands')
    .argument('<reference>')
    .option('--watch', 'show the progress until its work ends')
    .action(
      action(cli, needs, async (plugin, context, reference: string, options: { watch?: boolean }) => {
        const { followErasure } = await import('../progress.js');
        const before = await plugin.erasures.status(reference);
        const status = options.watch === true ? await followErasure(plugin, reference, context) : before;
        context.output.answer(status, statusText(status));
        if (options.watch !== true) return;
        if (status.waiting > 0) throw new Failure('unfinished', watchedText(status));
        requireErased(status, context.output);
      }),
    );

  group
    .command('receipts')
    .description('the receipts of a reference, or of a uid: they prove what was erased, and when')
    .argument('[reference]')
    .option('--uid <uid>', 'those of this uid')
    .action(
      action(
        cli,
        needs,
        async ({ erasures }, context, reference: string | undefined, { uid }: { uid?: string }) => {
          const count = await context.output.each(
            receiptsOf(erasures, reference, uid),
            receiptLine,
            RECEIPT_COLUMNS,
          );
          if (count === 0) context.output.note('There are no receipts.');
        },
      ),
    );

  const steered = (name: 'pause' | 'resume' | 'retry', description: string): void => {
    group
      .command(name)
      .description(description)
      .argument('<reference>')
      .action(
        action(cli, needs, async ({ erasures }, { output }, reference: string) => {
          const before = await erasures.status(reference);
          const status = before.finishedAt ? before : await erasures[name](reference);
          output.answer(status, statusText(status));
          if (before.finishedAt) output.note(nothingTo(name, reference));
        }),
      );
  };
  steered('pause', 'send nothing more of a reference until it is resumed');
  steered('resume', 'continue a reference after a pause');
  steered('retry', 'try the failed users of a reference again');

  group
    .command('cancel')
    .description('do not erase the users of a reference who were not sent yet; cannot be undone')
    .argument('<reference>')
    .option('--yes', 'do not ask for confirmation')
    .action(
      action(cli, needs, async ({ erasures }, context, reference: string, { yes }: { yes?: boolean }) => {
        const before = await erasures.status(reference);
        if (yes !== true && !before.finishedAt) await confirm(context, ...canceling(before));
        const status = before.finishedAt ? before : await erasures.cancel(reference);
        context.output.answer(status, statusText(status));
        if (before.finishedAt) context.output.note(nothingTo('cancel', reference));
      }),
    );
}

function receiptsOf(erasures: DebateSpaceErasures, reference: string | undefined, uid: string | undefined) {
  if (reference !== undefined && uid === undefined) return erasures.receipts(reference);
  if (uid !== undefined && reference === undefined) return erasures.receiptsOf(uid);
  throw new Failure('usage', 'Name either a reference or --uid <uid>.');
}

function nothingTo(name: string, reference: string): string {
  return `${shown(reference)} is already finished. Nothing to ${name}.`;
}

function canceling({ reference, waiting }: ErasureStatus): [consequence: string, words: string] {
  const users = counted(waiting, 'user');
  return [
    `${users} of ${reference} would not be erased, and the reference could not be used again.`,
    `cancel ${waiting}`,
  ];
}
