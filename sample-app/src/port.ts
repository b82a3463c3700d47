import { StartError } from './start-error.js';

/** A port that the environment may set. @throws {StartError} naming the variable */
export function portFrom(variable: string, fallback: number): number {
  const text = process.env[variable] ?? '';
  if (text === '') return fallback;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new StartError(`${variable} is "${text}". It must be a port: a whole number from 0 to 65535.`);
}

/** The ports that were chosen already, so that the hint for this one keeps them. */
function others(variable: string): string {
  return ['PORT', 'SIMULATOR_PORT']
    .filter((name) => name !== variable && process.env[name])
    .map((name) => `${name}=${process.env[name] ?? ''} `)
    .join('');
}

/** Has something listen on a port. @throws {StartError} naming the port, its variable and the hint */
export async function listening<T>(variable: string, port: number, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE') {
      throw new StartError(
        `Port ${port} is taken. Stop what listens there, or choose another port, such as ${others(variable)}${variable}=${port + 1}`,
      );
    }
    if (code === 'EACCES') {
      throw new StartError(`Port ${port} needs privileges. Choose one above 1023, such as ${variable}=8080`);
    }
    throw error;
  }
}
