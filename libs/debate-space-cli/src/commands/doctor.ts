import type { Command } from 'commander';
import type { CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { counted, duration, messageOf, shown } from '../output.js';
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
type Check = CheckResult['check'];

const ONLINE = ['address', 'token', 'users', 'clock'] as const;
/** The service takes a logout token only when both clocks agree. */
const MAX_SKEW_MS = 30_000;
const COMPARE_URLS = `Compare ${variables.authUrl} and ${variables.baseUrl} with what the operator of the service gave you. Behind a proxy, set HTTPS_PROXY; for a certificate of your own authority, set NODE_EXTRA_CA_CERTS.`;
const COMPARE_NAME = `Compare ${variables.applicationName} and ${variables.authUrl} with the logout route that the service shows.`;
const COMPARE_STORAGE = `Compare ${variables.storage} with the storage of your app.`;
const SET_CLOCK =
  'Set the clock of this machine by NTP; if it is right, contact the operator of the service.';

/** Checks the options, the service and the storage, all through the plugin: what it cannot reach, the app cannot reach. */
export function addDoctor(program: Command, cli: CliContext): void {
  const { output } = cli;
  program
    .command('doctor')
    .description('check options, service and storage, and say how to fix each problem; changes no user')
    .action(async () => {
      const results: CheckResult[] = [];
      await examine(cli, (result) => {
        results.push(result);
        if (!output.json) output.answer(result, resultText(result));
      });
      if (output.json) output.answer(results, '');
      const problems = results.filter(({ ok }) => ok === false).length;
      if (problems > 0) throw new Failure('problems', `${counted(problems, 'problem')} found.`);
    });
}

function resultText({ check, ok, detail, hint }: CheckResult): string {
  const line = `${ok === null ? '–' : ok ? '✓' : '✗'} ${check.padEnd(9)}  ${shown(detail)}`;
  return hint === undefined ? line : `${line}\n${' '.repeat(13)}→ ${shown(hint)}`;
}

async function examine(cli: CliContext, report: (result: CheckResult) => void): Promise<void> {
  const { settings } = cli;
  const { engine } = settings.storage;
  /** The check that found a problem: the checks that build on it are left out. */
  let stop: string | undefined;
  const check = async (name: Check, compare: string, find: () => Promise<string>): Promise<void> => {
    if (stop !== undefined) report({ check: name, ok: null, detail: `not checked: fix ${stop} first` });
    else
      try {
        report({ check: name, ok: true, detail: await find() });
      } catch (error) {
        if (cli.io.interrupted.aborted) throw error;
        const { problem = messageOf(error), hint = compare } = Object(error) as Partial<Failure>;
        report({ check: name, ok: false, detail: problem, hint: textInVariables(hint) });
        stop = name;
      }
  };
  const inMemory = { ...cli, settings: { ...settings, storage: { engine: 'memory', url: '' } as const } };
  try {
    await withPlugin(inMemory, {}, async (plugin) => {
      report({ check: 'options', ok: true, detail: `of application ${settings.options.applicationName}` });
      const finders = await serviceChecks(plugin, cli);
      for (const name of ONLINE) await check(name, COMPARE_URLS, finders[name]);
    });
    stop = undefined;
  } catch (error) {
    if (!(error instanceof InvalidConfiguration)) throw error;
    for (const { option, problem, hint } of error.problems)
      report({ check: 'options', ok: false, detail: `${option} ${problem}`, hint });
    stop = 'options';
    for (const name of ONLINE) await check(name, COMPARE_URLS, () => Promise.resolve(''));
  }
  const unnamed = `not checked: set ${variables.storage} to the storage of your app`;
  if (engine === 'memory') report({ check: 'storage', ok: null, detail: unnamed });
  else
    await check('storage', COMPARE_STORAGE, () =>
      // Opens it, reads and writes. Nothing is sent from it, and nothing in it is changed.
      withPlugin(cli, { shared: true }, async ({ outbox }) => {
        const { pending, parked } = await outbox.stats();
        await outbox.retry('doctor'); // writes to the row of this id, which is not there
        for (const { problem, hint } of outbox.warnings)
          report({ check: 'storage', ok: false, detail: problem, hint: textInVariables(hint) });
        return `${engine} opens, and can be read and written; ${counted(pending, 'logout')} waiting, ${parked} parked`;
      }),
    );
}

/** One request each, which touches no user. */
async function serviceChecks({ app, service }: Plugin, { io }: CliContext) {
  const { AccessTokens, LogoutRoute, Transport } = await import('nestjs-debate-space/internal');
  const { interrupted: signal } = io;
  const { url } = app.get(LogoutRoute);
  let skewMs: number | undefined;
  return {
    /** Without a token nobody can be logged out; that it is missed shows that the route is there. */
    address: async () => {
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
      const request = { operation: 'logoutUser', method: 'POST', url, headers, body: '' } as const;
      const { status, clockSkewMs } = await app.get(Transport).exchange(request, signal);
      skewMs = clockSkewMs;
      const answer = `${new URL(url).host} answers ${status} to a logout without a token`;
      if (status === 404 || status === 410) throw new Failure('problems', answer, COMPARE_NAME);
      if (status < 400 || status === 405 || status >= 500) throw new Failure('problems', answer);
      return answer;
    },
    token: async () => {
      await app.get(AccessTokens).get('authentication', signal);
      return 'the service takes API key and secret key';
    },
    users: async () => {
      const { total } = await service.listUsers({ perPage: 1 }, { signal });
      return `the user list answers${total === undefined ? '' : `; it has ${counted(total, 'user')}`}`;
    },
    clock: () => Promise.resolve(clockText(skewMs)),
  };
}

function clockText(skewMs: number | undefined): string {
  if (skewMs === undefined) return 'the service does not send its time (no Date header)';
  const apart = duration(Math.abs(skewMs));
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return `within ${apart} of the service's`;
  const where = `${apart} ${skewMs > 0 ? 'behind' : 'ahead of'} the service's`;
  const problem = `this machine's clock is ${where}; logout tokens are refused beyond about 30 s`;
  throw new Failure('problems', problem, SET_CLOCK);
}
