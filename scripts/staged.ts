// The packages as they are published: copies of folders in `libs` that are filled with what the repository has only once.
import { cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifestOf } from './manifest.js';
import { withAbsoluteLinks } from './packed-links.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const PLUGIN = 'nestjs-debate-space';
const NOT_PACKED = /[/\\](?:node_modules|src)$/;

/** The address of the repository. The `repository` of the root's package.json is the one place that names its owner. */
export function repositoryUrl(): string {
  const { repository } = manifestOf(root);
  if (typeof repository !== 'string') throw new Error('package.json: repository must be an address');
  return repository;
}

/** @throws an error while the address has the placeholder of the owner */
export function refusePlaceholder(url: string): void {
  if (!/\/OWNER(?:\/|$)/.test(url)) return;
  throw new Error(`${url} is a placeholder; hint: set the owner in "repository" of the root's package.json`);
}

/** The folders in `libs` by the names of their packages. */
function directories(): Map<string, string> {
  const folders = readdirSync(join(root, 'libs')).map((name) => `libs/${name}`);
  return new Map(folders.map((folder) => [manifestOf(join(root, folder)).name, folder]));
}

/**
 * Copies a package into a folder: with the address of the repository in its manifest, and with links that work in it.
 * @returns where the copy is
 */
export function stage(name: string, folder: string, url = repositoryUrl()): string {
  const directory = directories().get(name);
  if (directory === undefined) throw new Error(`there is no package ${name}`);
  const place = join(folder, name);
  cpSync(join(root, directory), place, { recursive: true, filter: (path) => !NOT_PACKED.test(path) });
  const manifest = manifestOf(place);
  const { files = [] } = manifest;
  const isPlugin = name === PLUGIN;
  const pages = files.filter((file) => file.endsWith('.md'));
  const shared = files.filter((file) => file.startsWith('docs/') || /^[A-Z]+/.test(file));
  if (isPlugin) for (const file of shared) cpSync(join(root, file), join(place, file), { recursive: true });
  const filled = {
    ...manifest,
    scripts: undefined,
    homepage: isPlugin ? `${url}#readme` : `${url}/tree/HEAD/${directory}#readme`,
    bugs: `${url}/issues`,
    repository: { type: 'git', url: `git+${url}.git`, directory },
  };
  writeFileSync(join(place, 'package.json'), `${JSON.stringify(filled, undefined, 2)}\n`);
  for (const page of pages.filter((path) => existsSync(join(place, path)))) {
    const text = readFileSync(join(place, page), 'utf8');
    const base = new URL(`${url}/blob/HEAD/${isPlugin ? '' : `${directory}/`}`);
    writeFileSync(join(place, page), withAbsoluteLinks(text, { page, base, files }));
  }
  return place;
}
