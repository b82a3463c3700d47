import { readFileSync } from 'node:fs';
import { join } from 'node:path';

type Texts = Readonly<Record<string, string>>;

/** What the scripts read of a package.json. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly type?: string;
  readonly dependencies?: Texts;
  readonly devDependencies?: Texts;
  readonly peerDependencies?: Texts;
  readonly overrides?: Texts;
  readonly exports?: Readonly<Record<string, { readonly types?: string }>>;
  readonly typesVersions?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly files?: readonly string[];
  readonly scripts?: Texts;
  readonly repository?: string | { readonly type: string; readonly url: string; readonly directory?: string };
  readonly homepage?: string;
  readonly bugs?: unknown;
}

/** The package.json of a folder. */
export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}
