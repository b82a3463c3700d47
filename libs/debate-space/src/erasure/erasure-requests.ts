import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { invalidArgument, type ErasureError } from '../errors.js';
import type { ErasureMode } from '../events.js';
import type { Added, Conflict, ErasureRequests, ListPart, Reference } from '../storage/storage.js';
import {
  conflictError,
  isReference,
  isText,
  type ErasureRepository,
  type NamedRequest,
} from './erasure-repository.js';
import { chunksOf } from './uid-source.js';

const USERS_PER_COMMIT = 250;

const NAMED_REQUEST = v.object({
  mode: v.picklist(['anonymize', 'delete'], "mode must be 'anonymize' or 'delete'"),
  reference: v.custom<string>(
    isReference,
    'reference must be a text of 1 to 128 characters, without control characters, controls of the text direction or ' +
      'lone surrogates',
  ),
  requestedBy: v.optional(
    v.custom<string>(
      (value) => isText(value, 256),
      'requestedBy must be a text of 1 to 256 characters, without control characters or lone surrogates',
    ),
  ),
});

/** Checks what a request says beside the uids. @throws {@link InvalidArgumentError} */
export function namedRequest(request: NamedRequest): NamedRequest {
  // By its name each, or a field that is missing has the message of valibot.
  const given = Object(request) as object;
  const names = Object.keys(NAMED_REQUEST.entries);
  const fields = names.map((name) => [name, Reflect.get(given, name) as unknown]);
  const { success, output, issues } = v.safeParse(NAMED_REQUEST, Object.fromEntries(fields));
  if (!success) throw invalidArgument('requestErasure', issues[0].message);
  return output;
}

/**
 * Adds one user.
 * @returns whether it is new
 * @throws {@link ErasureError} when the reference stands for something else
 */
export async function addUser(
  repository: ErasureRepository,
  requests: ErasureRequests,
  request: NamedRequest,
  uid: string,
): Promise<boolean> {
  return (await add(repository, requests, request, [uid])).isChange;
}

/**
 * Adds a list, of which nobody is erased before all of it is durable. The last of several calls reads it to its end.
 * @returns whether a user or the end of the list is new
 * @throws {@link InvalidArgumentError} when the list has no user: then nothing is stored
 * @throws {@link ErasureError} when the reference stands for something else
 */
export async function addList(
  repository: ErasureRepository,
  requests: ErasureRequests,
  request: NamedRequest,
  uids: AsyncIterable<string>,
): Promise<boolean> {
  const reader = randomUUID();
  let [isFirst, isLast, isChange] = [true, false, false];
  let known: Reference | undefined;
  const addPart = async (some: readonly string[]): Promise<void> => {
    const part = await add(repository, requests, request, some, { reader, isFirst, isLast }, known);
    ({ isChange, known } = part);
    isFirst = false;
  };
  for await (const some of chunksOf(uids, USERS_PER_COMMIT)) {
    isLast = some.length < USERS_PER_COMMIT;
    await addPart(some);
  }
  if (isFirst) throw invalidArgument('requestErasure', 'the list has no user');
  if (!isLast) {
    isLast = true;
    await addPart([]);
  }
  return isChange;
}

/** The reference for which this erasure is requested already, and needs nobody's help. */
export async function openReference(
  repository: ErasureRepository,
  requests: ErasureRequests,
  uid: string,
  mode: ErasureMode,
): Promise<string | undefined> {
  const open = await repository.openErasures([uid], requests);
  return open.find((erasure) => erasure.running && erasure.mode === mode)?.reference;
}

/** How many of these users' erasures are not finished. */
export async function countRequested(
  repository: ErasureRepository,
  uids: readonly string[],
  modes: readonly ErasureMode[],
): Promise<number> {
  const open = await repository.openErasures(uids);
  return new Set(open.filter(({ mode }) => modes.includes(mode)).map(({ uid }) => uid)).size;
}

async function add(
  repository: ErasureRepository,
  requests: ErasureRequests,
  request: NamedRequest,
  uids: readonly string[],
  list?: ListPart,
  known?: Reference,
): Promise<{ readonly isChange: boolean; readonly known: Reference }> {
  const added = await repository.add(requests, request, uids, list, known);
  if (added.conflict !== undefined) throw conflict(added);
  const isChange = added.added > 0 || added.completed;
  if (isChange) repository.changed();
  return { isChange, known: added.reference };
}

function conflict({ conflict, reference }: Extract<Added, { conflict: Conflict }>): ErasureError {
  const problems: Readonly<Record<Conflict, string>> = {
    changed: 'other calls change this reference at the moment; repeat the call',
    mode: `this reference stands for another mode (${reference?.mode}); give another reference`,
    canceled: 'this reference was canceled; give another reference',
    incomplete: 'the list of this reference is not read to its end; give another reference',
    complete: 'this reference has another list, which is complete; give another reference',
    'other-reader': 'another call has begun to read a list for this reference',
  };
  return conflictError(problems[conflict]);
}
