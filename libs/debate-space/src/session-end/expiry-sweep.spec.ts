import { beforeEach, describe, expect, it } from '@jest/globals';
import { Containment } from '../containment.js';
import type { SessionRecord } from '../debate-space.options.js';
import { Secret } from '../secret.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { DebateSpaceStorage } from '../storage/storage.js';
import type { EndRecorder } from './end-recorder.js';
import { ExpirySweep } from './expiry-sweep.js';
import { SessionRegistry } from './session-registry.js';
import { SessionSeal } from './session-seal.js';

const HOUR = 3_600_000;
const [A, B] = [new Secret('storage key A of a test'), new Secret('storage key B of a test')];
const [underA, underB, rotated] = [new SessionSeal([A]), new SessionSeal([B]), new SessionSeal([B, A])];

describe('a session that expires after the storage key was rotated', () => {
  let storage: DebateSpaceStorage;
  let registry: SessionRegistry;
  let told: string[];
  let alive: SessionRecord | undefined;
  beforeEach(async () => {
    storage = await memoryStorage().open({ namespace: 'app', families: ['session'], contained: () => undefined }); // prettier-ignore
    registry = new SessionRegistry(storage);
    [told, alive] = [[], undefined];
    await registry.put({ ...underA.seal('sid', 'alice'), expiresAt: Date.now() - HOUR });
  });

  async function sweep(seal: SessionSeal): Promise<void> {
    const hold = (uid: string) =>
      Promise.resolve({
        release: () => Promise.resolve(void told.push(uid)),
        cancel: () => Promise.resolve(),
      });
    await new ExpirySweep({
      registry,
      seal,
      recorder: { hold } as unknown as EndRecorder,
      lookUp: () => Promise.resolve(alive),
      lastOnly: true,
      everyMs: 60_000,
      containment: new Containment((event) => {
        throw new Error(event.type);
      }),
    }).sweep();
  }
  const rows = async (): Promise<string> =>
    JSON.stringify(await storage.range('session:', 'session;', { limit: 99 }));

  it('is reported, and nothing of it stays', async () => {
    await sweep(rotated);
    expect(told).toEqual(['alice']);
    expect(await rows()).toBe('[]');
  });

  it('is not reported while the user has a session under the new key', async () => {
    await registry.put({ ...rotated.seal('another', 'alice'), expiresAt: Date.now() + HOUR });
    await sweep(rotated);
    expect(told).toEqual([]);
  });

  it('moves to the new key when the store still has it', async () => {
    alive = { cookie: { expires: new Date(Date.now() + HOUR) } };
    await sweep(rotated);
    expect(told).toEqual([]);
    expect(await rows()).toContain(underB.name('sid', 'alice').hash);
    expect(await rows()).not.toContain(underA.name('sid', 'alice').hash);
  });

  it('is forgotten unreported when its key has been removed', async () => {
    await sweep(underB);
    expect(told).toEqual([]);
    expect(await rows()).toBe('[]');
  });
});
