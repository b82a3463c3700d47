import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const typescript = ['--import', fileOf('../support/process/typescript.mjs')];
const program = fileOf('simulator-without-stop.ts');
const commandLine = fileOf('../../libs/debate-space-simulator/src/cli.ts');

jest.setTimeout(30_000); // each process compiles what it runs

let child: ChildProcess | undefined;
let connection: Socket | undefined;
afterEach(() => {
  connection?.destroy();
  child?.kill('SIGKILL');
});

/** Starts a process that prints the address of its simulator. */
async function start(file: string, ...args: string[]): Promise<{ child: ChildProcess; url: URL }> {
  child = spawn(process.execPath, [...typescript, file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  if (!child.stdout) throw new Error('The process has no stdout.');
  for await (const line of createInterface(child.stdout)) {
    const [url] = /http:\S+/.exec(line) ?? [];
    if (url !== undefined) return { child, url: new URL(url) };
  }
  throw new Error('The process ended before it printed an address.');
}

async function connect({ port }: URL, request = ''): Promise<Socket> {
  connection = createConnection(Number(port), '127.0.0.1');
  connection.on('error', () => undefined); // the process that ends resets it
  await once(connection, 'connect');
  if (request !== '') connection.write(request);
  return connection;
}

describe('a simulator that is not stopped', () => {
  it('lets its process end', async () => {
    const { child } = await start(program);
    child.stdin?.end();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('lets its process end while another process holds an event stream open', async () => {
    const { child, url } = await start(program);
    const stream = await connect(url, 'GET /simulator/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(stream, 'data');
    child.stdin?.end();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('lets its process end while an answer is held back', async () => {
    const { child, url } = await start(program, 'latency');
    await connect(url, 'POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n');
    await once(child.stdout ?? child, 'data'); // the request is on record
    child.stdin?.end();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('keeps its process alive when keepProcessAlive is set', async () => {
    const { child, url } = await start(program, 'keepProcessAlive');
    child.stdin?.end();
    await once(child.stdout ?? child, 'data'); // stdin has ended, nothing else keeps the process
    expect((await fetch(url)).status).toBe(200);
    expect(child.exitCode).toBeNull();
  });
});

describe('the command debate-space-simulator', () => {
  it('serves until SIGTERM', async () => {
    const { child, url } = await start(commandLine, '--port', '0');
    child.stdin?.end();
    expect((await fetch(url)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});
