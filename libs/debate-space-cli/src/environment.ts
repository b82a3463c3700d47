import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { codeOf, Failure } from './failure.js';
import type { CliIo } from './cli-io.js';

/** The variables that are set; an empty one counts as none. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment, and what it lacks from an env file: the named one, or `.env` of the working folder if there is one.
 * @throws {Failure} when the named file cannot be read
 */
export async function readEnvironment(
  { env, folder }: Pick<CliIo, 'env' | 'folder'>,
  envFile: string | undefined,
): Promise<Environment> {
  const text = await readEnvFile(resolve(folder, envFile ?? '.env'), envFile !== undefined);
  return { ...filled(parseEnv(text)), ...filled(env) };
}

async function readEnvFile(path: string, isNamed: boolean): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' && !isNamed) return '';
    throw new Failure(
      'configuration',
      `${path} cannot be read (${codeOf(error)}); --config names a file of NAME=value lines`,
    );
  }
}

function filled(variables: NodeJS.Dict<string>): Environment {
  return Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
}
