import type { Command } from 'commander';
import type { CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { counted, duration, messageOf } from '../output.js';
import { InvalidConfiguration, withPlugin, type Plugin } from '../plugin.js';
import { textInVariables, variables } from '../settings.js';

/** What one check found. */
interface CheckResult {
  readonly check: 'options' | 'address' | 'token' | 'users' | 'clock' | 'storage';
  /** `null`: it could not be checked, because of what another check found. */
  readonly ok: boolean | null;
  readonly detail: string;
  /** Of a problem: how to fix it. */
  readonly hint?: string | undefined;
}
type Report = (result: CheckResult) => void;

/** The service takes a logout token only when both clocks agree. */
const MAX_SKEW_MS = 30_000;
const COMPARE_URLS = `Compare ${variables.authUrl} and ${variables.baseUrl} with what the operator of the service gave you. Behind a proxy, set HTTPS_PROXY; for a certificate of your own authority, set NODE_EXTRA_CA_CERTS.`;
const COMPARE_STORAGE = `Compare ${variables.storage} with the storage of your app.`;

/** Checks the options, the service and the storage, all through the plugin: what it cannot reach, the app cannot reach. */
export function addDoctor(program: Command, cli: CliContext): void {
  const { output } = cli;
  program
    .command('doctor')
    .description('check options, service and storage, and say how to fix each problem; touches no user')
    .action(async () => {
      const results: CheckResult[] = [];
      await examine(cli, (result) => {
        results.push(result);
        if (!output.json) output.answer(result, resultText(result));
      });
      if (output.json) output.answer(results, '');
      const problems = results.filter(({ ok }) => ok === false).length;
      if (problems > 0) throw new Failure('faults', `${counted(problems, 'problem')} found.`);
    });
}

function resultText({ check, ok, detail, hint }: CheckResult): string {
  const line = `${ok === null ? '–' : ok ? '✓' : '✗'} ${check.padEnd(9)}  ${detail}`;
  return hint === undefined ? line : `${line}\n${' '.repeat(13)}→ ${hint}`;
}

async function examine(context: CliContext, report: Report): Promise<void> {
  const { settings } = context;
  const inMemory = { ...context, settings: { ...settings, storage: { engine: 'memory', url: '' } as const } };
  try {
    await withPlugin(inMemory, {}, async (plugin) => {
      report({ check: 'options', ok: true, detail: `of application ${settings.options.applicationName}` });
      await examineService(plugin, context, report);
    });
  } catch (error) {
    if (!(error instanceof InvalidConfiguration)) throw error;
    for (const { option, problem, hint } of error.problems)
      report({ check: 'options', ok: false, detail: `${option} ${problem}`, hint });
    for (const check of ['address', 'token', 'users', 'clock', 'storage'] as const)
      report({ check, ok: null, detail: 'not checked: the options are wrong' });
    return;
  }
  await examineStorage(context, report);
}

/** Each check builds on those before it: after the first problem the others are left out. Touches no user. */
async function examineService({ app, service }: Plugin, { io }: CliContext, report: Report): Promise<void> {
  const { AccessTokens, LogoutRoute, Transport } = await import('nestjs-debate-space/internal');
  const { interrupted: signal } = io;
  const { url } = app.get(LogoutRoute);
  let skewMs: number | undefined;
  let stop: string | undefined;
  const check = async (name: CheckResult['check'], find: () => Promise<string>): Promise<void> => {
    if (stop !== undefined) {
      report({ check: name, ok: null, detail: `not checked: first see ${stop}` });
      return;
    }
    try {
      report({ check: name, ok: true, detail: await find() });
    } catch (error) {
      if (signal.aborted) throw error;
      const { problem = messageOf(error), hint = COMPARE_URLS } = Object(error) as Partial<Failure>;
      report({ check: name, ok: false, detail: problem, hint });
      stop = name;
    }
  };
  await check('address', async () => {
    // Without a token: nobody can be logged out by it. The refusal shows that the route is there.
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const request = { method: 'POST', url, headers, body: '' } as const;
    const { status, clockSkewMs } = await app.get(Transport).exchange(request, signal);
    skewMs = clockSkewMs;
    const answer = `${new URL(url).host} answers ${status} to a logout without a token`;
    if (status === 404)
      throw new Failure(
        'faults',
        answer,
        `Compare ${variables.applicationName} and ${variables.authUrl} with the logout route that the service shows.`,
      );
    if (status < 400 || status === 405 || status >= 500) throw new Failure('faults', answer);
    return answer;
  });
  await check('token', async () => {
    await app.get(AccessTokens).get('authentication', signal);
    return 'the service takes API key and secret key';
  });
  await check('users', async () => {
    const { total } = await service.listUsers({ perPage: 1 }, { signal });
    return `the user list answers${total === undefined ? '' : `; it has ${counted(total, 'user')}`}`;
  });
  await check('clock', () => Promise.resolve(clockText(skewMs)));
}

function clockText(skewMs: number | undefined): string {
  if (skewMs === undefined) return 'the service does not tell its time (no Date header)';
  const apart = duration(Math.abs(skewMs));
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return `within ${apart} of the service's`;
  throw new Failure(
    'faults',
    `this machine's clock is ${apart} ${skewMs > 0 ? 'behind' : 'ahead of'} the service's; logout tokens are refused beyond about 30 s`,
    'Set the clock of this machine by NTP; if it is right, tell the operator of the service.',
  );
}

/** Opens the storage, reads and writes. Nothing is sent from it, and nothing in it is changed. */
async function examineStorage(context: CliContext, report: Report): Promise<void> {
  const check = 'storage';
  const { engine } = context.settings.storage;
  if (engine === 'memory') {
    const detail = `not checked: it is in memory; to see the one that your app uses, set ${variables.storage}`;
    report({ check, ok: null, detail });
    return;
  }
  try {
    await withPlugin(context, { shared: true }, async ({ outbox }) => {
      const { pending, parked } = await outbox.stats();
      await outbox.retry('doctor'); // writes to the row of this id, which is not there
      const counts = `${counted(pending, 'logout')} waiting, ${parked} parked`;
      report({ check, ok: true, detail: `${engine} opens, and can be read and written; ${counts}` });
      for (const { problem, hint } of outbox.warnings)
        report({ check, ok: false, detail: problem, hint: textInVariables(hint) });
    });
  } catch (error) {
    if (context.io.interrupted.aborted) throw error;
    const { problem = messageOf(error), hint = COMPARE_STORAGE } = Object(error) as Partial<Failure>;
    report({ check, ok: false, detail: problem, hint: textInVariables(hint) });
  }
}
