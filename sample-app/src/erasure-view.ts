import type { ErasureProgress, ErasureStatus } from 'nestjs-debate-space';

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const COUNTS = ['done', 'notFound', 'vetoed', 'failed', 'canceled', 'waiting'] as const;
const SENTENCES: Readonly<Record<ErasureStatus['state'], string>> = {
  waiting: 'Recorded. The app sends it to the debate space as soon as possible.',
  running: 'In progress. You can close this page.',
  paused: 'Paused. Nothing is sent until you resume it.',
  overdue: 'Overdue. The app still tries.',
  done: 'Done.',
  canceled: 'Canceled.',
  unverified: 'Not verified. Its record was changed, so nothing is sent. Ask the operator of this app.',
};

/** An erasure as pages show it. Live pages get it again and again, by server-sent events. */
export interface ErasureView {
  readonly reference: string;
  /** `unread`: a part of the list was not stored. */
  readonly state: ErasureStatus['state'] | 'unread';
  readonly what: string;
  readonly requestedBy: string | undefined;
  readonly requestedAt: string;
  readonly sentence: string;
  readonly total: number;
  readonly finished: number;
  readonly counts: Readonly<Record<(typeof COUNTS)[number], number>>;
  readonly pace: string;
}

export function moment(date: Date): string {
  return `${TIME.format(date)} UTC`;
}

export function erasureView(erasure: ErasureStatus | ErasureProgress): ErasureView {
  const { reference, state, mode, complete, requestedBy, requestedAt, finishedAt, total } = erasure;
  const isUnread = !complete && finishedAt === undefined;
  const counts = Object.fromEntries(COUNTS.map((name) => [name, erasure[name]]));
  return {
    reference,
    state: isUnread ? 'unread' : state,
    what: mode === 'anonymize' ? 'Anonymize' : 'Delete',
    requestedBy,
    requestedAt: moment(requestedAt),
    sentence: isUnread ? 'A part of the list was not stored, and no user is erased yet.' : sentence(erasure),
    total,
    finished: erasure.done + erasure.notFound + erasure.vetoed,
    counts: counts as ErasureView['counts'],
    pace: 'perMinute' in erasure ? pace(erasure) : '',
  };
}

function sentence({ state, failed, waiting, vetoed, retrying }: ErasureStatus): string {
  if (state === 'overdue' && waiting === 0)
    return `Failed for ${users(failed)}. Fix the cause, then try again.`;
  const isTrying = state === 'waiting' || state === 'running' || state === 'overdue';
  if (isTrying && retrying && retrying.cause !== 'no slot of the rate limit')
    return `Not possible at the moment (${retrying.cause}). The app tries again automatically.`;
  return vetoed > 0 && state === 'done' ? `Done. The app vetoed ${users(vetoed)}.` : SENTENCES[state];
}

function users(number: number): string {
  return number === 1 ? '1 user' : `${number} users`;
}

function pace({ state, perMinute, msLeft, waitMs }: ErasureProgress): string {
  if (state !== 'waiting' && state !== 'running' && state !== 'overdue') return '';
  return [
    ...(waitMs === undefined ? [] : [`Waiting for the rate limit, continues in ${duration(waitMs)}`]),
    ...(perMinute === 0 ? [] : [`${perMinute} a minute`]),
    ...(msLeft === undefined ? [] : [`about ${duration(msLeft)} left`]),
  ].join('; ');
}

export function duration(ms: number): string {
  return ms < 90_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}
