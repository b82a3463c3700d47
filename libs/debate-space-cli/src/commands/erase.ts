import { randomUUID } from 'node:crypto';
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ErasureDryRun, ErasureMode, ErasureStatus } from 'nestjs-debate-space';
import {
  addExamples,
  commandContext,
  confirm,
  type CliContext,
  type CommandContext,
} from '../cli-context.js';
import { codeOf, Failure } from '../failure.js';
import { counted, table } from '../output.js';
import { withPlugin, type Plugin } from '../plugin.js';
import { readUids, UID_FORMATS, type UidList, type UidListOptions } from '../uid-list.js';
import { followErasure, nobodyFound, requireErased, statusText, watchedText } from './erasures.js';

interface EraseOptions extends Pick<UidListOptions, 'file' | 'format' | 'column'> {
  readonly mode: ErasureMode;
  readonly reference?: string;
  readonly requestedBy?: string;
  readonly dryRun?: boolean;
  readonly wait: boolean;
  readonly executeHere?: boolean;
  readonly yes?: boolean;
}

/** What an erasure would come to. Of the users that are not found, the first 100 lines. */
interface DryRun extends Pick<ErasureDryRun, 'total' | 'distinct' | 'duplicates' | 'known' | 'notFound'> {
  readonly notFoundLines: readonly number[];
  readonly alreadyRequested: number;
}

const MODES: readonly ErasureMode[] = ['anonymize', 'delete'];
const MODE_HELP =
  'required. anonymize: remove personal data, keep contributions. delete: remove everything; the uid can never log in again';
const VERBS = { anonymize: 'anonymized', delete: 'deleted with all their contributions' } as const;

/** Anonymizes or deletes users, for good. */
export function addErase(program: Command, cli: CliContext): void {
  const command = program
    .command('erase')
    .description('anonymize or delete users, for good')
    .argument('[uid...]', 'under which the users were registered')
    .addOption(new Option('--mode <mode>', MODE_HELP).choices(MODES).argParser(modeOf).makeOptionMandatory())
    .option('--file <file>', 'a list of uids instead: .csv or .txt, one a line; - is stdin')
    .addOption(new Option('--format <format>', 'of the file; default: by its extension').choices(UID_FORMATS))
    .option('--column <name>', 'of a CSV; default: uid')
    .option('--reference <text>', 'the name of this erasure; the same name continues it; default: a new UUID')
    .option('--requested-by <text>', 'who requested it, for the receipts')
    .option('--dry-run', 'count, and change nothing')
    .addOption(new Option('--no-wait', 'do not wait until your app has done it').conflicts('executeHere'))
    .option('--execute-here', 'erase here, and not in your app: this, and all else that waits in the storage')
    .option('--yes', 'do not ask for confirmation')
    .action(async (uids: string[], options: EraseOptions, invoked: Command) => {
      const { file, format, column, mode, dryRun = false, wait, executeHere = false, yes = false } = options;
      if (file === '-' && !yes && !dryRun)
        throw new Failure('usage', 'stdin is the list, so nobody can confirm. Add --yes to proceed.');
      // Read once: what is counted, and confirmed, is what is erased.
      const list = await readUids({ uids, file, format, column }, cli.io);
      const context = await commandContext(invoked, cli);
      const shared = !wait || executeHere;
      if (dryRun || !yes) {
        // Nothing is sent before it is confirmed, nothing else that waits in the storage either.
        const needs = { worker: false, shared };
        const counts = await withPlugin(context, needs, (plugin) => dryRunOf(plugin, list, mode, cli));
        if (dryRun) {
          cli.output.answer(counts, dryRunText(counts));
          if (counts.known === 0) throw nobodyFound('Nobody was found');
          return;
        }
        await confirm(cli, consequenceOf(counts, options, context), `${mode} ${counts.distinct}`);
      }
      await withPlugin(context, { worker: executeHere, shared }, (plugin) =>
        erase(plugin, list, options, context),
      );
    });
  addExamples(
    command,
    'erase 4711 --mode anonymize',
    'erase --file users.csv --column id --mode delete --dry-run',
    'erase --file users.csv --column id --mode delete --reference GDPR-2026-11',
    'erase --file - --format lines --mode delete --reference GDPR-2026-11 --yes < uids.txt',
  );
}

/** Takes British spelling as well. */
function modeOf(text: string): ErasureMode {
  const mode = MODES.find((each) => each === text.replace(/ise$/, 'ize'));
  if (mode) return mode;
  throw new InvalidArgumentError(`Allowed choices are ${MODES.join(', ')}.`);
}

/** Looks up which users of the list the service knows. Nothing is stored or erased. */
async function dryRunOf(
  { erasures }: Plugin,
  { lines, duplicates }: UidList,
  mode: ErasureMode,
  { io, output }: CliContext,
): Promise<DryRun> {
  output.note('Looking up who is registered …');
  const options = { mode, signal: io.interrupted };
  const { distinct, known, notFound, notFoundItems, alreadyRequested } = await erasures.dryRun(
    lines.keys(),
    options,
  );
  const numbers = [...lines.values()];
  const notFoundLines = notFoundItems.map((item) => numbers[item - 1] ?? item);
  const total = distinct + duplicates;
  return { total, distinct, duplicates, known, notFound, notFoundLines, alreadyRequested };
}

function dryRunText({ notFoundLines, alreadyRequested, notFound, ...counts }: DryRun): string {
  const more = notFound > notFoundLines.length ? ', …' : '';
  const rows = { ...counts, 'not found': notFound, 'already requested': alreadyRequested };
  return table([
    ...Object.entries(rows).map(([name, count]) => [name, String(count)]),
    ...(notFound > 0 ? [['not found in lines', notFoundLines.join(', ') + more]] : []),
  ]);
}

function consequenceOf(
  { distinct, duplicates, known, notFound, alreadyRequested }: DryRun,
  { mode, executeHere = false }: EraseOptions,
  { settings: { options } }: CommandContext,
): string {
  const aside = [
    [notFound, known === 0 ? 'not found: the service knows none of them' : 'not found'],
    [alreadyRequested, 'already requested'],
    [duplicates, 'named twice'],
  ] as const;
  const told = aside.flatMap(([count, what]) => (count > 0 ? [`${count} ${what}`] : []));
  const hooks = executeHere
    ? '\nThis command processes it, and all else that waits in the storage. It does not call `erasure.beforeErase` of your app.'
    : '';
  const where = `"${options.applicationName}" at ${new URL(options.authUrl ?? '').host}`;
  return `${counted(distinct, 'user')} of ${where} will be ${VERBS[mode]}. This cannot be undone.${told.length > 0 ? `\n(${told.join(', ')})` : ''}${hooks}`;
}

/** Requests the erasure, and waits until it is carried out – by the app that shares the storage, or here. */
async function erase(
  plugin: Plugin,
  { lines }: UidList,
  { mode, reference = randomUUID(), requestedBy, wait, executeHere = false }: EraseOptions,
  { io, output, settings }: CommandContext,
): Promise<void> {
  const { interrupted: signal } = io;
  const goOn = `Go on: the same command with --reference ${reference}`;
  output.note(`reference: ${reference}`);
  let status: ErasureStatus;
  try {
    status = await plugin.erasures.requestMany(lines.keys(), { mode, reference, requestedBy, signal });
  } catch (error) {
    if (codeOf(error) === 'ERR_DEBATE_SPACE_STORAGE')
      output.note(`It is unknown whether the list was stored. ${goOn}; nobody is erased twice.`);
    if (!signal.aborted) throw error;
    const problem = 'Interrupted before the list was noted: nothing of it is carried out.';
    throw new Failure('unfinished', `${problem} ${goOn}.`);
  }
  const isMemory = settings.storage.engine === 'memory';
  const onlyWatches = wait && !executeHere && !isMemory;
  if (onlyWatches)
    output.note(
      'Queued. Your app will process it; this command only watches. No app running? Use --execute-here.',
    );
  if (wait) status = await followErasure(plugin, reference, { io, output });
  output.answer(status, statusText(status));
  if (!wait) return;
  if (status.waiting > 0) {
    if (onlyWatches) throw new Failure('unfinished', watchedText(status));
    const kept = `They wait in the storage: an app that shares it goes on erasing them. To stop that: debate-space erasures pause ${reference} (or cancel). ${goOn}.`;
    const lost = `${goOn}. A storage in memory keeps nothing; users who are erased already count as not found.`;
    const left = `Stopped here; ${counted(status.waiting, 'user')} not erased yet.`;
    throw new Failure('unfinished', `${left} ${isMemory ? lost : kept}`);
  }
  requireErased(status, output);
}
