// The logout queue as it is built: what is measured is what is published. The types come from its sources, as there may be
// no build when they are checked.
const built = new URL('../../libs/debate-space/build/', import.meta.url);
const fileOf = (path: string): string => new URL(path, built).href;

export const { LogoutQueue, QUEUE_FAMILIES } = (await import(
  fileOf('logout/queue/logout-queue.js')
)) as typeof import('../../libs/debate-space/src/logout/queue/logout-queue.js');
export { MemoryStorage } from 'durable-jobs';
export const { Secret } = (await import(
  fileOf('secrets/secret.js')
)) as typeof import('../../libs/debate-space/src/secrets/secret.js');
export const { uidCipher } = (await import(
  fileOf('secrets/uid-cipher.js')
)) as typeof import('../../libs/debate-space/src/secrets/uid-cipher.js');

export type LogoutQueue = InstanceType<typeof LogoutQueue>;
export type UidCipher = ReturnType<typeof uidCipher>;
