import { setTimeout as delay } from 'node:timers/promises';
import { Option, type Command } from 'commander';
import type { LogoutHistoryEntry } from 'nestjs-debate-space';
import type { CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { shown } from '../output.js';
import { withPlugin } from '../plugin.js';
import { textInVariables } from '../settings.js';

/** The answer to a logout is the same for a user who is unknown, or not signed in. */
const ACCEPTED = 'The service accepted the logout. It does not say whether it has found the user.';
/** The app keeps no history: `logout.historyRetentionMs` is 0. */
const GONE =
  'The logout is no longer in the storage, which keeps no history: your app sent it or discarded it.';
const WATCHES =
  'Queued. Your app will send it; this command only watches. No app running? Use --execute-here.';
const LOOK_AGAIN_MS = 200;
const LOGOUTS = { guest: { kinds: ['logout'] } } as const;

/** Logs one user out of the debate space. */
export function addLogout(program: Command, cli: CliContext): void {
  program
    .command('logout <uid>')
    .description('log a user out of the debate space')
    .addOption(new Option('--no-wait', 'do not wait until your app has sent it').conflicts('executeHere'))
    .option(
      '--execute-here',
      'send it from here, and all logouts that wait in the storage, not from your app',
    )
    .action((uid: string, { wait, executeHere = false }: { wait: boolean; executeHere?: boolean }) =>
      withPlugin(cli, { ...LOGOUTS, worker: executeHere, shared: !wait || executeHere }, async (plugin) => {
        const { events, outbox, service } = plugin;
        let refusal: string | undefined;
        events.events$.subscribe((event) => {
          if (event.type === 'logout-route-unexpected')
            refusal = `${event.address} does not answer as a logout route (${event.cause}): ${shown(textInVariables(event.hint))}`;
          if (event.type === 'logout-retrying' && event.uid === uid && event.hint !== undefined)
            refusal = `The service refused the logout (${event.cause}): ${shown(textInVariables(event.hint))}. It waits in the storage, and your app tries it again.`;
        });
        const known = new Set((await outbox.history(uid)).map(({ id }) => id));
        await service.logoutUser(uid);
        const look = async () =>
          (await outbox.history(uid)).find(({ id, reason }) => !known.has(id) && reason === 'requested');
        if (wait && !executeHere && cli.settings.storage.engine !== 'memory') cli.output.note(WATCHES);
        const logout = wait ? await settled(look, () => refusal, cli) : await look();
        const told = wait ? (logout ? ACCEPTED : GONE) : 'Queued; your app sends it.';
        cli.output.answer(logout ?? { state: 'unknown' }, told);
      }),
    );
}

/**
 * Waits until it is sent, by any process: the storage may be shared.
 * @param refusal what this process has got instead of an answer of the logout route
 * @returns `undefined` when it has left the storage without a history
 */
async function settled(
  look: () => Promise<LogoutHistoryEntry | undefined>,
  refusal: () => string | undefined,
  { io: { interrupted }, output, settings }: CliContext,
): Promise<LogoutHistoryEntry | undefined> {
  const told = new Set<string>();
  while (!interrupted.aborted) {
    const logout = await look();
    if (!logout || logout.state === 'delivered') return logout;
    const { state, cause = '', hint = '' } = logout;
    if (state === 'parked')
      throw new Failure(
        'service',
        `The service refused the logout (${cause}): ${shown(textInVariables(hint))}`,
      );
    if (state !== 'pending') throw new Failure('failed', `The logout was not sent (${state}).`);
    const refused = refusal();
    if (refused !== undefined) throw new Failure('service', refused);
    if (cause !== '' && !told.has(cause)) output.note(`not delivered yet (${cause}); it is tried again`);
    told.add(cause);
    await delay(LOOK_AGAIN_MS, undefined, { signal: interrupted }).catch(() => undefined);
  }
  const isKept = settings.storage.engine !== 'memory';
  const goOn = isKept ? 'it waits in the storage, and your app sends it' : 'run the command again';
  throw new Failure('unfinished', `Interrupted before the service accepted the logout: ${goOn}.`);
}
