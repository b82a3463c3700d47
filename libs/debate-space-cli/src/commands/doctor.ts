import type { Command } from 'commander';
import type {
  DebateSpaceOutbox,
  DebateSpaceErasures,
  OptionProblem,
  StorageWarning,
} from 'nestjs-debate-space';
import { addExamples } from '../cli-context.js';
import { Failure, messageOf } from '../failure.js';
import { commandContext, type CliContext, type CommandContext } from '../cli-context.js';
import { counted, duration, shown } from '../output.js';
import { inVariables, textInVariables, variables } from '../variables.js';

/** What one check found. */
interface CheckResult {
  /** Its name; stable. */
  readonly check: 'options' | 'address' | 'clock' | 'token' | 'users' | 'storage';
  /** `null`: it could not be checked, because of what another check found. */
  readonly ok: boolean | null;
  readonly detail: string;
  /** Of a problem: how to fix it. */
  readonly hint?: string;
}
type Check = CheckResult['check'];

const MAX_SKEW_MS = 30_000;
const LONG_MS = 60_000;
const ONLINE_CHECKS: readonly Check[] = ['address', 'clock', 'token', 'users'];
const COMPARE_URLS = `Compare ${variables.authUrl} and ${variables.baseUrl} with what the operator of the service gave you.`;
const COMPARE_STORAGE = `Compare ${variables.storage} with the storage of your app.`;
const NO_CONNECTION = `Compare host and port in ${variables.authUrl}. Behind a proxy, set HTTPS_PROXY; for a certificate of your own authority, set NODE_EXTRA_CA_CERTS.`;

/** Checks the options, the service and the storage. Touches no user. */
export function addDoctor(program: Command, cli: CliContext): void {
  const command = program
    .command('doctor')
    .description('check options, service and storage, and say how to fix each problem; touches no user')
    .action(async (_: object, invoked: Command) => {
      const context = await commandContext(invoked, cli);
      const { output } = context;
      const results: CheckResult[] = [];
      for await (const result of runChecks(context)) {
        results.push(result);
        if (!output.json) output.answer(result, resultText(result));
      }
      if (output.json) output.answer(results, '');
      const problems = results.filter(({ ok }) => ok === false).length;
      if (problems > 0) throw new Failure('faults', `${counted(problems, 'problem')} found.`);
    });
  addExamples(command, 'doctor', 'doctor --config production.env --json');
}

function resultText({ check, ok, detail, hint }: CheckResult): string {
  const verdict = ok === null ? '–' : ok ? '✓' : '✗';
  const line = `${verdict} ${check.padEnd(9)}  ${detail}`;
  return hint === undefined ? line : `${line}\n${' '.repeat(13)}→ ${hint}`;
}

const fine = (check: Check, detail: string): CheckResult => ({ check, ok: true, detail });
const fault = (check: Check, detail: string, hint: string): CheckResult => ({
  check,
  ok: false,
  detail,
  hint,
});
const unchecked = (check: Check, why: string): CheckResult => ({
  check,
  ok: null,
  detail: `not checked: ${why}`,
});

/** All checks, one after the other; goes on after a problem with what can still be checked. */
async function* runChecks(context: CommandContext): AsyncGenerator<CheckResult> {
  const problems = await optionProblems(context);
  for (const { option, problem, hint } of problems) yield fault('options', `${option} ${problem}`, hint);
  if (problems.length > 0) for (const check of ONLINE_CHECKS) yield unchecked(check, 'the options are wrong');
  else {
    yield fine('options', `of application ${context.settings.applicationName ?? ''}`);
    yield* checkService(context);
  }
  yield* checkStorage(context);
}

/** What is missing, and what the plugin itself would refuse at boot. Nothing is sent. */
async function optionProblems({ settings }: CommandContext): Promise<readonly OptionProblem[]> {
  const { DebateSpaceOptionsError, memoryStorage } = await import('nestjs-debate-space');
  const { bootPlugin } = await import('../plugin-app.js');
  const known = new Set(settings.problems.map(({ option }) => option));
  try {
    await (await bootPlugin(settings, memoryStorage(), true, false)).close();
    return settings.problems;
  } catch (error) {
    if (!(error instanceof DebateSpaceOptionsError)) throw error;
    const refused = error.problems.map(inVariables).filter(({ option }) => !known.has(option));
    return [...settings.problems, ...refused];
  }
}

/** Through the plugin itself: what it cannot reach from here, the app on this machine cannot reach either. */
async function* checkService({ settings, io, output }: CommandContext): AsyncGenerator<CheckResult> {
  const { DebateSpaceService, memoryStorage } = await import('nestjs-debate-space');
  const { AccessTokens, LogoutRoute, Transport } = await import('nestjs-debate-space/internal');
  const { bootPlugin, NotesOf } = await import('../plugin-app.js');
  const { interrupted: signal } = io;
  const app = await bootPlugin(settings, memoryStorage(), true, new NotesOf(output));
  try {
    // Without a token: nobody can be logged out by it.
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const request = { method: 'POST', url: app.get(LogoutRoute).url, headers, body: '' } as const;
    const host = new URL(request.url).host;
    try {
      const { status, clockSkewMs } = await app.get(Transport).exchange(request, signal);
      yield checkAddress(host, status);
      yield checkClock(clockSkewMs);
    } catch (error) {
      if (signal.aborted) throw error;
      yield fault('address', `${host}: ${messageOf(error)}`, NO_CONNECTION);
      for (const check of ONLINE_CHECKS.slice(1)) yield unchecked(check, 'there is no connection');
      return;
    }
    const called = async (check: Check, call: () => Promise<string>): Promise<CheckResult> => {
      try {
        return fine(check, await call());
      } catch (error) {
        if (signal.aborted) throw error;
        return fault(check, messageOf(error), COMPARE_URLS);
      }
    };
    const token = await called('token', async () => {
      await app.get(AccessTokens).get('authentication', signal);
      return 'the service takes API key and secret key';
    });
    yield token;
    if (token.ok !== true && settings.listAuth !== 'apiKey')
      yield unchecked('users', 'there is no access token');
    else
      yield await called('users', async () => {
        const { total } = await app.get(DebateSpaceService).listUsers({ perPage: 1 }, { signal });
        return `the user list answers${total === undefined ? '' : `; it has ${counted(total, 'user')}`}`;
      });
  } finally {
    await app.close();
  }
}

/** A missing token is refused only where there is such an application. */
function checkAddress(host: string, status: number): CheckResult {
  if (status === 404)
    return fault(
      'address',
      `${host} has no logout route for this application name (404)`,
      `Compare ${variables.applicationName} with the logout route that the service shows, {auth_url}/auth/logout/{application_name}; if it is right, compare ${variables.authUrl}.`,
    );
  const isElsewhere = (status >= 300 && status < 400) || status === 405 || status >= 500;
  const answers = `${host} answers ${status} to a logout without a token`;
  return isElsewhere ? fault('address', answers, COMPARE_URLS) : fine('address', answers);
}

/** The service takes a logout token only when both clocks agree. */
function checkClock(skewMs: number | undefined): CheckResult {
  if (skewMs === undefined) return unchecked('clock', 'the service does not tell its time (no Date header)');
  const apart = duration(Math.abs(skewMs));
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return fine('clock', `within ${apart} of the service's`);
  return fault(
    'clock',
    `this machine's clock is ${apart} ${skewMs > 0 ? 'behind' : 'ahead of'} the service's; logout tokens are refused beyond about 30 s`,
    'Set the clock of this machine by NTP (timedatectl set-ntp true); if it is right, tell the operator of the service.',
  );
}

/** Opens the storage, and looks. Nothing is sent from it. */
async function* checkStorage({ settings }: CommandContext): AsyncGenerator<CheckResult> {
  const { engine } = settings.storage;
  if (engine === 'memory') {
    const why = `it is in memory; to see the one that your app uses, set ${variables.storage}`;
    yield unchecked('storage', why);
    return;
  }
  const { DebateSpaceErasures, DebateSpaceOptionsError, DebateSpaceOutbox } =
    await import('nestjs-debate-space');
  const { bootPlugin } = await import('../plugin-app.js');
  const { connectStorage } = await import('../storage.js');
  let close = (): Promise<void> => Promise.resolve();
  try {
    const connection = await connectStorage(settings.storage);
    close = () => connection.close();
    // Any address will do: whatever is wrong with the real one, the storage can be looked at.
    const somewhere = { ...settings, authUrl: 'http://localhost', baseUrl: undefined };
    const app = await bootPlugin(somewhere, connection.engine, false, false);
    close = async () => {
      await app.close();
      await connection.close();
    };
    const outbox = app.get(DebateSpaceOutbox);
    const found = [
      ...outbox.warnings.map(({ problem, hint }) => fault('storage', problem, hint)),
      ...(await logoutProblems(outbox)),
      ...(await erasureProblems(app.get(DebateSpaceErasures))),
    ];
    const { pending } = await outbox.stats();
    yield fine('storage', `${engine} opens; ${counted(pending, 'logout')} waiting`);
    yield* found;
  } catch (error) {
    if (error instanceof DebateSpaceOptionsError) yield unchecked('storage', 'the options are wrong');
    else if (error instanceof Failure) yield fault('storage', error.problem, error.hint ?? COMPARE_STORAGE);
    else {
      const { problem = messageOf(error), hint = COMPARE_STORAGE } = Object(error) as Partial<StorageWarning>;
      yield fault('storage', problem, textInVariables(hint));
    }
  } finally {
    await close();
  }
}

async function logoutProblems(outbox: DebateSpaceOutbox): Promise<readonly CheckResult[]> {
  const { pending, parked, oldestPendingMs: oldest = 0 } = await outbox.stats();
  const found: CheckResult[] = [];
  if (oldest > LONG_MS)
    found.push(
      fault(
        'storage',
        `${counted(pending, 'logout')} waiting, the oldest for ${duration(oldest)}`,
        'See that an app that shares this storage runs and reaches the service, then look again with: debate-space outbox stats',
      ),
    );
  if (parked > 0)
    found.push(
      fault(
        'storage',
        `${counted(parked, 'logout')} parked`,
        'See causes and hints with: debate-space outbox parked; then: debate-space outbox retry --all',
      ),
    );
  return found;
}

async function erasureProblems(erasures: DebateSpaceErasures): Promise<readonly CheckResult[]> {
  const late: string[] = [];
  for await (const { state, failed, reference } of erasures.list())
    if (state === 'overdue' || failed > 0) late.push(reference);
  if (late.length === 0) return [];
  const hint =
    'Look with: debate-space erasures status <reference>; fix the cause that it names, then: debate-space erasures retry <reference>';
  return [fault('storage', `erasures overdue or failed: ${late.map(shown).join(', ')}`, hint)];
}
