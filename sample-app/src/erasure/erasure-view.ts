import type { ErasureProgress, ErasureStatus } from 'nestjs-debate-space';
import { count, inWords, moment, userCount } from '../pages/in-words.js';

/** An erasure, as pages show it and as events keep them up to date. All text, except for the bar. */
export interface ErasureView {
  readonly reference: string;
  /** `unread`: the list was not read to its end. */
  readonly state: ErasureStatus['state'] | 'unread';
  /** The same for people. */
  readonly stateText: string;
  readonly what: string;
  readonly requestedBy: string | undefined;
  readonly requestedAt: string;
  readonly sentence: string;
  /** For the progress bar. */
  readonly total: number;
  readonly finished: number;
  /** Changes with each quarter, for those who hear the page. */
  readonly announcement: string;
  /** What the bar counts, behind its numbers. */
  readonly counted: string;
  readonly counts: Readonly<Record<(typeof COUNTED)[number] | 'finished' | 'total', string>>;
  readonly pace: string;
}

const COUNTED = ['done', 'notFound', 'vetoed', 'canceled', 'failed', 'waiting'] as const;

const SENTENCES: Readonly<Record<Exclude<ErasureStatus['state'], 'canceled'>, string>> = {
  waiting: 'Recorded. The app sends it to the debate space as soon as possible.',
  running: 'In progress. You can close this page.',
  paused: 'Paused. Nothing is sent until somebody resumes it.',
  overdue: 'Overdue. The app still tries.',
  done: 'Done.',
};

const STATES: Readonly<Record<ErasureStatus['state'], string>> = {
  waiting: 'waiting',
  running: 'running',
  paused: 'paused',
  overdue: 'overdue',
  done: 'finished',
  canceled: 'canceled',
};
/** States in which the app tries to go on. */
const TRYING: readonly ErasureStatus['state'][] = ['waiting', 'running', 'overdue'];

const UNREAD =
  'The list was not read to its end, and nobody is erased yet. Upload it again under the same reference.';

/** @param trouble why the last attempts failed, in words */
export function erasureView(status: ErasureStatus | ErasureProgress, trouble?: string): ErasureView {
  const { reference, state, mode, requestedBy, requestedAt, total } = status;
  const finished = status.done + status.notFound + status.vetoed; // what is canceled or failed is not
  const counts = COUNTED.map((name) => [name, count(status[name])] as const);
  const quarters = total === 0 ? 0 : Math.floor((4 * finished) / total);
  const isUnread = !status.complete && !status.finishedAt;
  return {
    reference,
    state: isUnread ? 'unread' : state,
    what: mode === 'anonymize' ? 'Anonymize' : 'Delete',
    requestedBy,
    requestedAt: moment(requestedAt),
    stateText: isUnread ? 'list not read to its end' : STATES[state],
    sentence: sentence(status, trouble),
    total,
    finished,
    counted: state === 'canceled' ? 'done before the cancellation' : 'finished',
    announcement: `${quarters * 25} percent`,
    counts: {
      ...(Object.fromEntries(counts) as Record<(typeof COUNTED)[number], string>),
      finished: count(finished),
      total: count(total),
    },
    pace: 'perMinute' in status && TRYING.includes(state) && trouble === undefined ? pace(status) : '',
  };
}

function sentence(
  { complete, state, done, notFound, canceled, vetoed, failed, waiting, finishedAt }: ErasureStatus,
  trouble: string | undefined,
): string {
  if (!complete && !finishedAt) return UNREAD;
  if (state === 'canceled')
    return `Canceled: ${count(done + notFound)} done, ${count(canceled + vetoed + failed)} not erased.`;
  if (state === 'overdue' && waiting === 0)
    return `${users(failed)} not erased: every attempt failed. Fix the cause, then try again.`;
  if (trouble !== undefined && TRYING.includes(state))
    return `Not possible at the moment: ${trouble}. The app tries again automatically.`;
  const veto = vetoed > 0 && finishedAt ? ` ${users(vetoed)} not erased: the app vetoed it.` : '';
  return `${SENTENCES[state]}${veto}`;
}

function users(number: number): string {
  return `${userCount(number)} ${number === 1 ? 'is' : 'are'}`;
}

function pace({ perMinute, msLeft, waitMs }: ErasureProgress): string {
  const parts = [
    ...(waitMs === undefined ? [] : [`waiting for the rate limit, continues in ${inWords(waitMs)}`]),
    ...(perMinute === 0 ? [] : [`${count(perMinute)} a minute`]),
    ...(msLeft === undefined ? [] : [`about ${inWords(msLeft)} left`]),
  ];
  const text = parts.join('; ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}
