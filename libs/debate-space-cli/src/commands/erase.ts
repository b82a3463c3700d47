import { randomUUID } from 'node:crypto';
import { Option, type Command } from 'commander';
import type { ErasureDryRun, ErasureMode, ErasureStatus } from 'nestjs-debate-space';
import { confirm, type CliContext } from '../cli-context.js';
import { codeOf, Failure } from '../failure.js';
import { counted, fields, pasteable, quoted, shown } from '../output.js';
import { withPlugin, type Plugin } from '../plugin.js';
import { readUids, UID_FORMATS, type UidList, type UidListOptions } from '../uid-list.js';
import { followErasure, noneFound, requireErased, statusText, watchedText } from './erasures.js';

interface EraseOptions extends UidListOptions {
  readonly mode: ErasureMode;
  readonly reference?: string;
  readonly requestedBy?: string;
  readonly dryRun?: boolean;
  readonly wait: boolean;
  readonly executeHere?: boolean;
  readonly yes?: boolean;
}

/** What an erasure would come to. Of the users that are not found, the first 100 lines. */
interface DryRun extends Pick<ErasureDryRun, 'distinct' | 'known' | 'notFound' | 'alreadyRequested'> {
  readonly notFoundLines: readonly number[];
}

const MODE_HELP =
  'anonymize: remove personal data, keep contributions. delete: remove everything; the uid can never log in again';
const VERBS = { anonymize: 'anonymized', delete: 'deleted with all their contributions' } as const;
const HOOKS =
  'This command erases users itself, without calling `erasure.beforeErase` of your app. Your app processes the other erasures in the storage.';
const WATCHES =
  'Queued. Your app will process it; this command only watches. No app running? Use --execute-here.';

/** Anonymizes or deletes users, for good. */
export function addErase(program: Command, cli: CliContext): void {
  const modes = new Option('--mode <mode>', MODE_HELP).choices(Object.keys(VERBS));
  program
    .command('erase [uid...]')
    .description('anonymize or delete users, for good')
    .addOption(modes.makeOptionMandatory())
    .option('--file <file>', 'a list of uids instead: .csv, .ndjson, or .txt with one a line; - is stdin')
    .addOption(new Option('--format <format>', 'of the file; default: by its extension').choices(UID_FORMATS))
    .option('--column <name>', 'of a CSV, or the field of NDJSON; default: uid')
    .option('--reference <text>', 'the name of this erasure; the same name continues it; default: a new UUID')
    .option('--requested-by <text>', 'who requested it, for the receipts')
    .option('--dry-run', 'count, and change nothing')
    .addOption(new Option('--no-wait', 'do not wait until your app has done it').conflicts('executeHere'))
    .option('--execute-here', 'erase them here, without `erasure.beforeErase` of your app')
    .option('--yes', 'do not ask for confirmation')
    .action(async (uids: string[], options: EraseOptions) => {
      const { mode, dryRun = false, wait, executeHere = false, yes = false } = options;
      if (options.file === '-' && !yes && !dryRun)
        throw new Failure('usage', 'stdin is the list, so nobody can confirm. Add --yes to proceed.');
      // Read once: what is counted, and confirmed, is what is erased.
      const list = await readUids({ ...options, uids }, cli.io);
      const shared = !wait || executeHere;
      if (dryRun || !yes) {
        // Nothing is sent before it is confirmed, nothing else that waits in the storage either.
        const counts = await withPlugin(cli, { shared }, (plugin) => dryRunOf(plugin, list, mode, cli));
        if (dryRun) {
          cli.output.answer(counts, dryRunText(counts));
          if (counts.known === 0) throw noneFound('No user was found');
          return;
        }
        await confirm(cli, consequenceOf(counts, options, cli), `${mode} ${counts.distinct}`);
      }
      const { reference = randomUUID() } = options;
      const guest = { kinds: ['erasure'], reference } as const;
      await withPlugin(cli, { worker: executeHere, shared, guest }, (plugin) =>
        erase(plugin, list, { ...options, reference }, cli),
      );
    });
}

/** Looks up which users of the list the service knows. Nothing is stored or erased. */
async function dryRunOf(
  { erasures }: Plugin,
  list: UidList,
  mode: ErasureMode,
  { io, output }: CliContext,
): Promise<DryRun> {
  output.note('Looking up who is registered …');
  const found = await erasures.dryRun(list.keys(), { mode, signal: io.interrupted });
  const { distinct, known, notFound, notFoundItems, alreadyRequested } = found;
  const numbers = [...list.values()];
  const notFoundLines = notFoundItems.map((item) => numbers[item - 1] ?? item);
  return { distinct, known, notFound, notFoundLines, alreadyRequested };
}

function dryRunText({ notFoundLines, ...counts }: DryRun): string {
  const more = counts.notFound > notFoundLines.length ? ', …' : '';
  return fields({ ...counts, notFoundLines: notFoundLines.join(', ') + more });
}

function consequenceOf(
  { distinct, known, notFound, alreadyRequested }: DryRun,
  { mode, executeHere = false }: EraseOptions,
  { settings: { options, storage } }: CliContext,
): string {
  const unknown = known === 0 ? 'not found: all of them' : 'not found';
  const aside = { [unknown]: notFound, 'already requested': alreadyRequested };
  const told = Object.entries(aside).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  const where = `"${shown(options.applicationName)}" at ${new URL(options.authUrl ?? '').host}`;
  const what = `${counted(distinct, 'user')} of ${where} will be ${VERBS[mode]}. This cannot be undone.`;
  const withoutHooks = executeHere || storage.engine === 'memory' ? [HOOKS] : [];
  return [what, ...(told.length > 0 ? [`(${told.join(', ')})`] : []), ...withoutHooks].join('\n');
}

/** Requests the erasure, and waits until the app that shares the storage, or this command, has done it. */
async function erase(
  { erasures }: Plugin,
  list: UidList,
  options: EraseOptions & { readonly reference: string },
  cli: CliContext,
): Promise<void> {
  const { mode, reference, requestedBy, wait, executeHere = false, yes = false } = options;
  const { io, output, settings } = cli;
  const { interrupted: signal } = io;
  const isMemory = settings.storage.engine === 'memory';
  if (yes && (executeHere || isMemory)) output.note(HOOKS); // otherwise it was part of the question
  const goOn = `To continue: the same command with --reference ${quoted(reference)}`;
  output.note(`reference: ${shown(reference)}`);
  let status: ErasureStatus;
  try {
    status = await erasures.requestMany(list.keys(), { mode, reference, requestedBy, signal });
  } catch (error) {
    if (codeOf(error) === 'ERR_DEBATE_SPACE_STORAGE')
      output.note(`It is unknown whether the list was stored. ${goOn}; nobody is erased twice.`);
    if (!signal.aborted) throw error;
    const problem = 'Interrupted before the whole list was stored: no user of it is erased.';
    throw new Failure('unfinished', `${problem} ${goOn}.`);
  }
  const onlyWatches = wait && !executeHere && !isMemory;
  if (onlyWatches) output.note(WATCHES);
  if (wait) status = await followErasure(erasures, reference, cli);
  output.answer(status, statusText(status));
  if (!wait) return;
  const then = isMemory
    ? `${goOn}. A storage in memory keeps nothing; users who are erased already count as not found.`
    : `They wait in the storage: an app that shares it continues to erase them. To stop that: ${pasteable('erasures', 'pause', reference)} (or cancel). ${goOn}.`;
  const stopped = `Stopped here; ${counted(status.waiting, 'user')} not erased yet. ${then}`;
  requireErased(status, onlyWatches ? watchedText(status) : stopped, cli);
}
