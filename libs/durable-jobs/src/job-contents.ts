import { createHash, createHmac } from 'node:crypto';
import type { JobCodec } from './job-records.js';
import { Sealer } from './sealer.js';

/** What a job of {@link openJobs} carries. */
export interface Content {
  readonly payload: string;
  readonly key: string | undefined;
  readonly attempts: number;
  readonly failures: number;
}

/** How the jobs of {@link openJobs} are stored: with keys, sealed and under hashes. */
export class JobContents {
  readonly #keys: readonly string[];
  readonly #sealer: Sealer | undefined;

  /** @param keys the first one seals and hashes, all of them open and find; none: payloads are stored as they are */
  constructor(
    private readonly namespace: string,
    keys: readonly string[],
  ) {
    this.#keys = keys;
    if (keys.length > 0) this.#sealer = new Sealer(keys, 'durable-jobs: payloads');
  }

  /** What is sealed opens in its own record only. */
  codecOf(kind: string): JobCodec<Content> {
    const recordOf = (id: string): string => JSON.stringify([this.namespace, kind, id]);
    return {
      encode: ({ payload, key, attempts, failures }, id) => {
        const text = JSON.stringify({ payload, key });
        return { text: this.#sealer?.seal(text, recordOf(id)) ?? text, attempts, failures };
      },
      decode: (stored, id) => {
        const { text, attempts, failures } = stored as Partial<Record<string, unknown>>;
        if (typeof text !== 'string' || typeof attempts !== 'number' || typeof failures !== 'number')
          return undefined;
        const opened = this.#sealer ? this.#sealer.open(text, recordOf(id)) : text;
        const content = contentOf(opened);
        return content && { ...content, attempts, failures };
      },
    };
  }

  hash(key: string): string {
    return this.hashes(key)[0] ?? '';
  }

  /** Under all keys, that of the first one first. */
  hashes(key: string): readonly string[] {
    const hashes =
      this.#keys.length === 0
        ? [createHash('sha256').update(key)]
        : this.#keys.map((secret) => createHmac('sha256', secret).update(`durable-jobs: key\0${key}`));
    return hashes.map((hash) => hash.digest('base64url').slice(0, 22));
  }
}

function contentOf(text: string | undefined): Pick<Content, 'payload' | 'key'> | undefined {
  try {
    const { payload, key } = Object(JSON.parse(text ?? '')) as Partial<Record<string, unknown>>;
    return typeof payload === 'string'
      ? { payload, key: typeof key === 'string' ? key : undefined }
      : undefined;
  } catch {
    return undefined;
  }
}
